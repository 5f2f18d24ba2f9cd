"""Servers on a real socket, in the test's own loop, and the dialect they speak."""

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec

from stepline.sources.load.dialect import Ask, Delta
from stepline.sources.load.level import Address


class _Finish(msgspec.Struct):
    type: str


class _Meta(msgspec.Struct):
    completion_tokens: int
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: _Finish | None = None


class _Event(msgspec.Struct):
    meta_info: _Meta | None = None
    text: str = ""
    error: str | None = None


_EVENT = msgspec.json.Decoder(_Event)


class NativeDialect:
    """Like SGLang's native route: every event carries the running count."""

    name, path, takes_ids, exact = "native", "/generate", True, True

    def body(self, ask: Ask) -> bytes:
        return msgspec.json.encode({"input_ids": ask.prompt_ids, "max_new_tokens": ask.output_tokens})

    def count(self, event: bytes) -> int | None:
        meta = None if event == b"[DONE]" else _EVENT.decode(event).meta_info
        return None if meta is None or meta.finish_reason else meta.completion_tokens

    def read(self, event: bytes) -> Delta | None:
        if event == b"[DONE]":
            return None
        got = _EVENT.decode(event)
        if got.meta_info is None:
            return Delta(error=got.error)
        return Delta(
            tokens=got.meta_info.completion_tokens,
            text=bool(got.text),
            prompt_tokens=got.meta_info.prompt_tokens,
            cached_tokens=got.meta_info.cached_tokens,
            finish=got.meta_info.finish_reason.type if got.meta_info.finish_reason else None,
        )


class _Usage(msgspec.Struct):
    completion_tokens: int


class _Choice(msgspec.Struct):
    text: str = ""
    token_ids: list[int] | None = None
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None


class PlainDialect:
    """Like a plain OpenAI server: text alone, and the usage in the last event; ids of tokens where it sends them."""

    name, path, takes_ids, exact = "plain", "/v1/completions", False, False

    def body(self, ask: Ask) -> bytes:
        return msgspec.json.encode({"prompt": ask.prompt_text, "max_tokens": ask.output_tokens})

    def count(self, _event: bytes) -> int | None:
        return None

    def read(self, event: bytes) -> Delta | None:
        if event == b"[DONE]":
            return None
        got = msgspec.json.decode(event, type=_Completion)
        choice = got.choices[0] if got.choices else _Choice()
        return Delta(
            tokens=got.usage.completion_tokens if got.usage else None,
            more_tokens=None if choice.token_ids is None else len(choice.token_ids),
            text=bool(choice.text),
            finish=choice.finish_reason,
        )


def event(tokens: int, finish: str | None = None, **more: Any) -> bytes:
    """An event of the native route."""
    meta = {"completion_tokens": tokens, "finish_reason": {"type": finish} if finish else None, **more}
    return b"data: " + msgspec.json.encode({"text": "x", "meta_info": meta}) + b"\n\n"


def chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
Handle = Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


class Request(msgspec.Struct):
    head: bytes
    body: dict[str, Any]
    number: int
    """Of all requests to this server, from 0."""
    done: bool = False
    """It was answered whole."""


class Server:
    """Runs `handle` once a request, over as many requests as a connection brings."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self.requests: list[Request] = []
        self.connections = 0
        self.dropped = 0
        """Connections that the client closed while their request was being answered."""
        self.open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open.add(writer)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                body = msgspec.json.decode(await reader.readexactly(length))
                request = Request(head, body, len(self.requests))
                self.requests.append(request)
                answering = asyncio.ensure_future(self._handle(request, writer))
                gone = asyncio.ensure_future(_left(reader))
                await asyncio.wait({answering, gone}, return_when=asyncio.FIRST_COMPLETED)
                if not answering.done():
                    self.dropped += 1
                    answering.cancel()
                    return
                if gone.done():
                    return
                gone.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await gone
                await answering
                request.done = True
                if writer.is_closing():
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self.open.discard(writer)
            self._tasks.discard(task)
            writer.close()

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _left(reader: asyncio.StreamReader) -> None:
    """Return when the client has closed the connection."""
    with contextlib.suppress(ConnectionError):
        await reader.read(1)


@contextlib.asynccontextmanager
async def serving(
    handle: Handle, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[Server, Address]]:
    """A server for the length of the block."""
    server = Server(handle)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = await asyncio.start_server(server.serve, host, 0, family=family, ssl=tls)
    port = listening.sockets[0].getsockname()[1]
    try:
        yield server, Address(host=host, port=port, tls=tls is not None)
    finally:
        listening.close()
        await server.stop()
        await listening.wait_closed()


def streaming(
    *, ttft_s: float = 0.01, gap_s: float = 0.005, per_event: int = 1, wrote: list[list[float]] | None = None
) -> Handle:
    """A healthy server: every token takes `gap_s`, an event holds `per_event` of them.

    `wrote` is given a list a request: when it was read and when each event was written.
    """

    async def handle(request: Request, writer: asyncio.StreamWriter) -> None:
        asked, sent = int(request.body["max_new_tokens"]), 0
        times = [time.perf_counter()]
        if wrote is not None:
            wrote.append(times)
        writer.write(CHUNKED)
        await asyncio.sleep(ttft_s)
        while sent < asked:
            more = min(per_event, asked - sent)
            if sent:
                await asyncio.sleep(gap_s * more)
            sent += more
            counts = {"prompt_tokens": len(request.body["input_ids"]), "cached_tokens": 0}
            times.append(time.perf_counter())
            writer.write(chunk(event(sent, "length" if sent == asked else None, **counts)))
        writer.write(chunk(b"data: [DONE]\n\n") + chunk(b""))
        await writer.drain()

    return handle
