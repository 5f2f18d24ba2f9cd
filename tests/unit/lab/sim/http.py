"""The little HTTP/1.1 that tests of the simulated server need: one request a connection."""

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

_HOST = "127.0.0.1"
_TOKENS = re.compile(rb'"completion_tokens":\s*(\d+)')
_CACHED = re.compile(rb'"cached_tokens":\s*(\d+)')


async def _send(
    port: int, method: str, path: str, body: bytes
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bool]:
    reader, writer = await asyncio.open_connection(_HOST, port, limit=2**22)
    writer.write(
        f"{method} {path} HTTP/1.1\r\nHost: {_HOST}:{port}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head.split(None, 2)[1])
        chunked = b"transfer-encoding: chunked" in head.lower()
        if status != 200:
            rest = await reader.read(500)
            raise ConnectionError(  # noqa: TRY301  # closed like every other end below
                f"{path} answered {status}: {rest.decode(errors='replace')}"
            )
    except BaseException:
        await _close(writer)
        raise
    return reader, writer, chunked


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close and wait for it: what is left to the end of the event loop is closed by nobody."""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def _chunks(reader: asyncio.StreamReader, *, chunked: bool) -> AsyncGenerator[bytes]:
    while True:
        if not chunked:
            data = await reader.read(2**20)
        else:
            size = int((await reader.readline()).split(b";")[0] or b"0", 16)
            data = (await reader.readexactly(size + 2))[:-2]
        if not data:
            return
        yield data


async def call(port: int, path: str, body: dict[str, Any] | None = None) -> bytes:
    """GET `path`, or POST it with a JSON body, and return the whole answer.

    Raises:
        ConnectionError: nobody listens, or the status is not 200.
    """
    data = b"" if body is None else json.dumps(body).encode()
    reader, writer, chunked = await _send(port, "GET" if body is None else "POST", path, data)
    try:
        return b"".join([part async for part in _chunks(reader, chunked=chunked)])
    finally:
        await _close(writer)


async def generate(port: int, body: dict[str, Any]) -> AsyncGenerator[tuple[float, int, int]]:
    """Stream one native `/generate` request.

    Yields:
        Wall time (Unix seconds) of arrival, tokens answered so far (the engine's own count), cached prompt
        tokens. Closing the iterator closes the connection, which makes the engine drop the request.

    Raises:
        ConnectionError: nobody listens, or the status is not 200.
    """
    reader, writer, chunked = await _send(port, "POST", "/generate", json.dumps(body).encode())
    try:
        async for part in _chunks(reader, chunked=chunked):
            counts = _TOKENS.findall(part)
            if counts:
                cached = _CACHED.findall(part)
                yield time.time(), int(counts[-1]), int(cached[-1]) if cached else 0
    finally:
        await _close(writer)
