"""A small HTTP/1.1 server: parsed by httptools, answered by plain functions, streams without a task each."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import httptools
import msgspec

MAX_BODY = 64 * 2**20
_PHRASES = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    501: "Not Implemented",
}


@dataclass
class Call:
    """One request as it arrived."""

    method: str
    path: str
    peer: str
    body: bytearray = field(default_factory=bytearray)

    def json(self) -> dict[str, Any]:
        """The body as an object; empty where there is none.

        Raises:
            ValueError: it is not a JSON object.
        """
        found = msgspec.json.decode(bytes(self.body)) if self.body else {}
        if not isinstance(found, dict):
            raise TypeError("the body must be a JSON object")
        return found


class Reply:
    """Where an answer goes; a closed connection swallows what comes late."""

    def __init__(self, transport: asyncio.Transport, *, keep: bool, done: Callable[[], None]) -> None:
        self._transport, self._keep, self._done = transport, keep, done
        self.on_lost: Callable[[], None] | None = None
        """Called once when the client goes before the answer ended."""
        self.status: int | None = None

    def send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        """A whole answer."""
        self.status = status
        self._write(self._head(status, kind) + f"content-length: {len(body)}\r\n\r\n".encode() + body)
        self._end()

    def json(self, value: object, status: int = 200) -> None:
        """A whole answer in JSON."""
        self.send(status, msgspec.json.encode(value))

    def stream(self, kind: str = "text/event-stream; charset=utf-8") -> None:
        """Begin a chunked answer."""
        self.status = 200
        self._write(self._head(200, kind) + b"transfer-encoding: chunked\r\n\r\n")

    def chunk(self, data: bytes) -> None:
        """A part of it."""
        self._write(b"%x\r\n%b\r\n" % (len(data), data))

    def finish(self) -> None:
        """Its end."""
        self._write(b"0\r\n\r\n")
        self._end()

    def _head(self, status: int, kind: str) -> bytes:
        keep = "" if self._keep else "connection: close\r\n"
        first = f"HTTP/1.1 {status} {_PHRASES.get(status, '')}\r\n"
        return f"{first}server: uvicorn\r\ncontent-type: {kind}\r\n{keep}".encode()

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    def _end(self) -> None:
        self.on_lost = None
        if not self._keep:
            self._transport.close()
        self._done()


Handler = Callable[[Call, Reply], None]


class Connection(asyncio.Protocol):
    """One client; requests of a connection are answered in order, one at a time."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._parser: Any = None
        self._waiting: list[tuple[Call, bool]] = []
        self._reply: Reply | None = None
        self._transport: asyncio.Transport | None = None
        self._call: Call | None = None
        self._peer = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client came."""
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername") or ("", 0)
        self._peer = f"{peer[0]}:{peer[1]}"
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if self._transport:
                self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """The client went."""
        self._waiting.clear()
        if self._reply is not None and self._reply.on_lost is not None:
            self._reply.on_lost()
            self._reply.on_lost = None

    def on_url(self, url: bytes) -> None:
        """The parser read the target."""
        self._call = Call(
            self._parser.get_method().decode(), url.split(b"?")[0].decode("ascii", "replace"), self._peer
        )

    def on_body(self, body: bytes) -> None:
        """The parser read a part of the body."""
        if self._call is not None:
            self._call.body += body
            if len(self._call.body) > MAX_BODY and self._transport:
                self._transport.close()

    def on_message_complete(self) -> None:
        """The parser read a whole request."""
        if self._call is not None:
            self._waiting.append((self._call, self._parser.should_keep_alive()))
            self._call = None
            self._next()

    def _next(self) -> None:
        if self._reply is None and self._waiting and self._transport is not None:
            call, keep = self._waiting.pop(0)
            self._reply = Reply(self._transport, keep=keep, done=self._ended)
            self._handler(call, self._reply)

    def _ended(self) -> None:
        self._reply = None
        if self._waiting and self._transport is not None and not self._transport.is_closing():
            asyncio.get_running_loop().call_soon(self._next)
