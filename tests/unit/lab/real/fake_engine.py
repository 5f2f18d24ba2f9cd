"""Speaks the few routes that the lab uses, so that its plumbing can be tested without a GPU."""

import argparse
import gzip
import json
import pathlib
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(
            b"fake_up 1\n"
            if self.path == "/metrics"
            else json.dumps({"cwd": str(pathlib.Path.cwd())}).encode()
        )

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/start_profile":
            with gzip.open(pathlib.Path(body["output_dir"], "1-TP-0.trace.json.gz"), "wt") as f:
                json.dump({"steps": body["num_steps"]}, f)
            return self.answer(b"ok")
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for n in range(1, body["sampling_params"]["max_new_tokens"] + 1):
            time.sleep(0.001)
            meta = {"completion_tokens": n, "cached_tokens": 3, "prompt_tokens": len(body["input_ids"])}
            self.chunk(b"data: " + json.dumps({"text": "x" * n, "meta_info": meta}).encode() + b"\n\n")
        self.chunk(b"data: [DONE]\n\n")
        self.chunk(b"")
        return None

    def chunk(self, data):
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def answer(self, data):
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


parser = argparse.ArgumentParser()
parser.add_argument("--model-path")
parser.add_argument("--port", type=int)
parser.add_argument("--refuse", action="store_true")
args = parser.parse_args()
if args.refuse:
    sys.exit("cannot start")
json.loads(pathlib.Path(args.model_path, "tokenizer.json").read_text())
server = ThreadingHTTPServer(("127.0.0.1", args.port), Handler)
print(pathlib.Path.cwd() / "models", "/opt/x/lib/python3.12/site-packages/sglang/srt/a.py")
print("The server is fired up and ready to roll!", flush=True)
server.serve_forever()
