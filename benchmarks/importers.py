# ruff: noqa: D102, E501
"""Runs real load generators against a mock whose batch is known, imports their results and compares.

    python benchmarks/importers.py [--aiperf PATH] [--guidellm PATH] [--vllm PATH] [--sglang PYTHON]

The mock has 8 slots and makes a token every 10 ms in each; 32 streams are held open against it, so 24 wait. Every
importer must find about 8 decoding streams. A tool whose command is not given is skipped and named.
"""

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from stepline.sources.read import read

SLOTS = 8
STREAMS = 32
REQUESTS = 96
TOKENS = 120
TOKEN_S = 0.010
MODEL = "mock"


class Mock:
    """An OpenAI-compatible server: so many slots, each a token every TOKEN_S; the rest of the requests wait."""

    def __init__(self) -> None:
        self.slots = asyncio.Semaphore(SLOTS)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                path = head.split(" ", 2)[1]
                length = next(
                    (
                        int(line[15:])
                        for line in head.split("\r\n")
                        if line.lower().startswith("content-length:")
                    ),
                    0,
                )
                body = json.loads(await reader.readexactly(length)) if length else {}
                if head.startswith("POST"):
                    await self.generate(writer, path, body)
                else:
                    answer = json.dumps(
                        {"object": "list", "data": [{"id": MODEL, "object": "model"}]}
                    ).encode()
                    header = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(answer)}\r\n\r\n"
                    writer.write(header.encode() + answer)
                await writer.drain()

    async def generate(self, writer: asyncio.StreamWriter, path: str, body: dict[str, object]) -> None:
        count = int(str(body.get("max_completion_tokens") or body.get("max_tokens") or TOKENS))
        chat = "chat" in path
        if not body.get("stream"):
            usage = {"prompt_tokens": 16, "completion_tokens": 1, "total_tokens": 17}
            choice = {
                "index": 0,
                "message": {"role": "assistant", "content": "a"},
                "text": "a",
                "finish_reason": "stop",
            }
            answer = json.dumps({"id": "1", "choices": [choice], "usage": usage, "model": MODEL}).encode()
            writer.write(
                f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(answer)}\r\n\r\n".encode()
            )
            writer.write(answer)
            return
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        async with self.slots:
            clock = asyncio.get_running_loop()
            start = clock.time()
            for index in range(1, count + 1):
                await asyncio.sleep(max(0.0, start + index * TOKEN_S - clock.time()))
                delta = {"delta": {"content": "a "}} if chat else {"text": "a "}
                choice = {"index": 0, **delta, "finish_reason": "length" if index == count else None}
                usage = {"prompt_tokens": 16, "completion_tokens": index, "total_tokens": 16 + index}
                self.send(
                    writer,
                    {
                        "id": "1",
                        "object": "chat.completion.chunk" if chat else "text_completion",
                        "model": MODEL,
                        "choices": [choice],
                        "usage": usage,
                    },
                )
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")

    @staticmethod
    def send(writer: asyncio.StreamWriter, event: dict[str, object]) -> None:
        data = b"data: " + json.dumps(event).encode() + b"\n\n"
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


@contextlib.contextmanager
def mock_server() -> Iterator[int]:
    """The mock on a free port of this machine, in a thread."""
    loop = asyncio.new_event_loop()
    ready: list[int] = []
    started = threading.Event()

    async def main() -> None:
        server = await asyncio.start_server(Mock().handle, "127.0.0.1", 0)
        ready.append(server.sockets[0].getsockname()[1])
        started.set()

    def serve() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(main())
        loop.run_forever()

    threading.Thread(target=serve, daemon=True).start()
    started.wait()
    yield ready[0]
    loop.call_soon_threadsafe(loop.stop)


def tokenizer(folder: Path) -> Path:
    """A word tokenizer that needs no download, as the tools insist on one."""
    folder.mkdir(parents=True, exist_ok=True)
    words = {"[UNK]": 0, "[PAD]": 1, **{word: n + 2 for n, word in enumerate("abcdefghijklmnopqrstuvwxyz")}}
    words |= {f"w{n}": n + 100 for n in range(2000)}
    document = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(document))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": "[UNK]",
        "pad_token": "[PAD]",
        "eos_token": "z",
        "bos_token": "a",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    return folder


def aiperf(command: str, port: int, folder: Path) -> None:
    arguments = [
        *("profile", "--model", MODEL, "--url", f"http://127.0.0.1:{port}", "--endpoint-type", "completions"),
        *("--streaming", "--concurrency", str(STREAMS), "--request-count", str(REQUESTS)),
        *("--synthetic-input-tokens-mean", "16", "--output-tokens-mean", str(TOKENS)),
        *("--tokenizer", str(tokenizer(folder / "tok")), "--output-artifact-dir", str(folder / "out")),
        *("--ui", "none"),
    ]
    run([command, *arguments], folder)


def guidellm(command: str, port: int, folder: Path) -> None:
    arguments = [
        *("run", "--backend", f"kind=openai_http,target=http://127.0.0.1:{port},model={MODEL}"),
        *("--profile", f"kind=concurrent,streams={STREAMS}"),
        *("--constraint", f"kind=max_requests,count={REQUESTS}"),
        *("--data", f"kind=synthetic_text,prompt_tokens=16,output_tokens={TOKENS}"),
        *("--tokenizer", f"kind=huggingface_auto,model={tokenizer(folder / 'tok')}"),
        *("--output", f"kind=json,path={folder / 'out' / 'benchmarks.json'}", "--disable-progress"),
    ]
    (folder / "out").mkdir()
    run([command, *arguments], folder)


def vllm(command: str, port: int, folder: Path) -> None:
    """`vllm bench serve`; given as the path of `vllm`."""
    arguments = [
        *("bench", "serve", "--backend", "openai", "--base-url", f"http://127.0.0.1:{port}"),
        *("--model", MODEL, "--tokenizer", str(tokenizer(folder / "tok")), "--dataset-name", "random"),
        *("--random-input-len", "16", "--random-output-len", str(TOKENS), "--num-prompts", str(REQUESTS)),
        *("--max-concurrency", str(STREAMS), "--save-result", "--save-detailed"),
        *("--result-dir", str(folder / "out"), "--result-filename", "vllm.json"),
    ]
    (folder / "out").mkdir()
    run([command, *arguments], folder)


def sglang(command: str, port: int, folder: Path) -> None:
    """SGLang's bench_serving; given as the path of a Python that has sglang."""
    arguments = [
        *("-m", "sglang.bench_serving", "--backend", "vllm", "--base-url", f"http://127.0.0.1:{port}"),
        *("--model", MODEL, "--tokenizer", str(tokenizer(folder / "tok")), "--dataset-name", "random-ids"),
        *("--random-input-len", "16", "--random-output-len", str(TOKENS), "--random-range-ratio", "1.0"),
        *("--num-prompts", str(REQUESTS), "--max-concurrency", str(STREAMS), "--output-details"),
        *("--output-file", str(folder / "out" / "sglang.jsonl"), "--disable-tqdm"),
    ]
    (folder / "out").mkdir()
    run([command, *arguments], folder)


def run(command: list[str], folder: Path) -> None:
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command[0]} left with {done.returncode}:\n{(done.stdout + done.stderr)[-6000:]}")


def main() -> None:
    parser = argparse.ArgumentParser()
    tools = {"aiperf": aiperf, "guidellm": guidellm, "vllm": vllm, "sglang": sglang}
    for name in tools:
        parser.add_argument(f"--{name}")
    given = vars(parser.parse_args())
    for name, drive in tools.items():
        if not given[name]:
            print(f"{name:10s} skipped: no command given")
            continue
        with tempfile.TemporaryDirectory() as folder, mock_server() as port:
            drive(given[name], port, Path(folder))
            for level in read([Path(folder) / "out"]).levels:
                off = (level.decoding or 0.0) / SLOTS - 1
                rate = (level.tok_s or 0.0) * (level.tpot_ms or 0.0) / 1000
                print(
                    f"{name:10s} {level.origin}: {level.requests} requests, TPOT {level.tpot_ms:.2f} ms, "
                    f"{level.tok_s:.0f} tok/s, decoding {level.decoding:.2f} of {SLOTS} ({off:+.1%}), "
                    f"tok/s * TPOT {rate:.2f} ({rate / SLOTS - 1:+.1%}), in flight {level.in_flight}"
                )


if __name__ == "__main__":
    main()
