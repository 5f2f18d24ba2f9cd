"""Small real servers that misbehave, for the command line to be pointed at."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType

MODELS = json.dumps({"data": [{"id": "m\u001b[31m<script>", "owned_by": "nobody"}]}).encode()

LONG_BODY = 1000
"""Bytes of a request with more than a hundred prompt tokens."""


class Handler(BaseHTTPRequestHandler):
    """Lists a model, and answers requests for text as the server's `answer` says."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        told = self.server.routes.get(self.path)  # type: ignore[attr-defined]
        if told is not None:
            self.reply(200, json.dumps(told).encode())
        elif self.path == "/v1/models":
            self.reply(200, MODELS)
        else:
            self.reply(404, b"{}")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append(dict(self.headers))  # type: ignore[attr-defined]
        self.server.answer(self)  # type: ignore[attr-defined]

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, events: Iterator[bytes], gap_s: float = 0.01) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            for event in events:
                self.wfile.write(event)
                self.wfile.flush()
                time.sleep(gap_s)
        except OSError:
            pass
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def serving(
    answer: Callable[[Handler], None], routes: Mapping[str, object] = MappingProxyType({})
) -> Iterator[ThreadingHTTPServer]:
    """A server on a free port; `routes` are further answers to GET, as JSON."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.answer = answer  # type: ignore[attr-defined]
    server.asked = []  # type: ignore[attr-defined]
    server.routes = routes  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def answering(handler: Handler) -> None:
    """A sound stream of two hundred tokens."""
    handler.stream((token(n, total=200) for n in range(1, 201)), gap_s=0.005)


def token(count: int, *, total: int) -> bytes:
    finish = "length" if count == total else None
    event = {"choices": [{"text": " a", "finish_reason": finish}], "usage": {"completion_tokens": count}}
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def compiling(seconds: float) -> Callable[[Handler], None]:
    """Sound, but silent for a time from the first long prompt on, as while its kernels are compiled."""
    until: list[float] = []

    def answer(handler: Handler) -> None:
        if int(handler.headers["Content-Length"]) > LONG_BODY:
            until.append(time.monotonic() + seconds)
            time.sleep(max(0.0, until[0] - time.monotonic()))
        answering(handler)

    return answer


def failing(handler: Handler) -> None:
    handler.reply(500, b'{"error": "<b>no</b>"}')


def echoing(handler: Handler) -> None:
    """Repeats the key it was sent, as some proxies do."""
    handler.reply(401, b"no such key: " + handler.headers.get("Authorization", "").encode())


def hanging(handler: Handler) -> None:
    time.sleep(60)


def garbling(handler: Handler) -> None:
    handler.stream(iter([b"data: {nonsense\n\n", b"data: [DONE]\n\n"]))


def closing(handler: Handler) -> None:
    handler.stream(token(n, total=99) for n in range(1, 4))


def lying(handler: Handler) -> None:
    """Four tokens, and in the end a claim of four hundred."""
    claim = {"choices": [], "usage": {"completion_tokens": 400}}
    events = [token(n, total=4) for n in range(1, 5)]
    handler.stream(iter([*events, b"data: " + json.dumps(claim).encode() + b"\n\n", b"data: [DONE]\n\n"]))
