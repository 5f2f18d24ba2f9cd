"""One connection to the server: writes a request, reads its streamed answer, and stays open for the next."""

import asyncio
import ssl
import time
from typing import Any, cast

import httptools
import msgspec

from stepline.sources.load.answer import Answer, End
from stepline.sources.load.dialect import Dialect
from stepline.sources.load.level import Address
from stepline.sources.load.pace import Pace
from stepline.sources.load.sse import EventSplitter, EventTooLong, events_of_whole_chunks

CONNECT_S = 5.0
"""A server on any network answers a handshake within this; several SYN retries fit."""
MAX_HEAD_BYTES = 1 << 16
"""Bytes in a row that bring no body: headers, trailers and chunk sizes of any real server are far smaller."""
MAX_FAULT_BYTES = 200
"""Kept of the body of an answer by another status: the server's own words on what is wrong."""


GARBLED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What a dialect raises over what a server wrote: no UTF-8 and JSON nested without end are its faults too."""


class Connection(asyncio.Protocol):
    """An HTTP/1.1 connection with one request at a time. Every fault ends that request and is named in it."""

    __slots__ = (
        "_answer",
        "_at_chunk",
        "_bytes_without_body",
        "_count",
        "_events",
        "_fault",
        "_length",
        "_now_s",
        "_opening",
        "_pace",
        "_parser",
        "_read",
        "_served",
        "_transport",
        "_untouched",
        "heard_s",
    )

    def __init__(self, dialect: Dialect, pace: Pace) -> None:
        self._pace = pace
        self._read, self._count = dialect.read, dialect.count
        self._transport: asyncio.Transport | None = None
        self._parser: Any = None
        self._events = EventSplitter()
        self._answer: Answer | None = None
        self._now_s = 0.0
        self._bytes_without_body = 0
        self._fault = b""
        self._at_chunk = False
        """The parser stands between two chunks of an answer, and no event is open."""
        self._length, self._opening = 0, b""
        """Of the last read that was one chunk of one event: its bytes, and what stood before the payload."""
        self.heard_s = 0.0
        """When the server last sent anything, or was last sent a request."""
        self._untouched = True
        self._served = 0

    @property
    def alive(self) -> bool:
        """A further request may be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, request: bytes, answer: Answer, done: asyncio.Future[None]) -> None:
        """Send a whole request; `done` is set when `answer` is over, or came back as `unsent`."""
        if self._transport is None or self._answer is not None:
            raise RuntimeError("the connection is closed or busy")
        self._parser = httptools.HttpResponseParser(self)
        self._events, self._fault, self._bytes_without_body = EventSplitter(), b"", 0
        self._answer, self._untouched, self._at_chunk = answer, True, False
        self._transport.write(request)
        now = self.heard_s = time.perf_counter()
        answer.sent(now, lambda: None if done.done() else done.set_result(None))

    def drop(self, end: End, words: str | None = None) -> None:
        """End the request in flight, if any, and the connection, so that the server stops working on it."""
        answer, self._answer = self._answer, None
        if answer is not None and end != "cut" and answer.status not in (None, 200):
            answer.close("status", time.perf_counter(), self._status_words(answer))
        elif answer is not None:
            answer.close(end, time.perf_counter(), words)
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The handshake is done."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Parse one read; all of it carries the same time."""
        now = self._now_s = self.heard_s = time.perf_counter()
        if self._pace.due:
            self._pace.rest()
        answer = self._answer
        if answer is None:  # nothing was asked: no later answer may be read out of this
            self.drop("garbled")
            return
        if self._at_chunk and self._take_whole(data, answer, now):
            return
        self._untouched = False
        self._bytes_without_body += len(data)
        try:
            self._parser.feed_data(data)
            # Beyond a chunk's end the parser may stand in the size of the next one, which ends no line yet.
            self._at_chunk = self._at_chunk and data.endswith(b"\r\n") and self._events.empty
        except httptools.HttpParserError as error:
            self._end("garbled", f"no HTTP: {error}")
        if self._bytes_without_body > MAX_HEAD_BYTES:
            self._end("garbled", f"over {MAX_HEAD_BYTES} bytes of headers")

    def _take_whole(self, data: bytes, answer: Answer, now: float) -> bool:
        """Take a read of whole chunks with one event each, as nearly every read of a stream is; False for any other.

        The parser does not hear of it, and stays between two chunks.
        """
        start, end = len(self._opening), len(data) - 4
        try:
            if (  # one chunk as long as the last one
                len(data) == self._length
                and data.startswith(self._opening)
                and data.endswith(b"\n\n\r\n")
                and data.find(b"\n", start) == end  # a line end within would be one of the stream's grammar
                and data.find(b"\r", start) == end + 2
            ):
                tokens = self._count(data[start:end])
                if tokens is not None and answer.rise(tokens, now):
                    return True
            payloads = events_of_whole_chunks(data)
            if payloads is None:
                return False
            if len(payloads) == 1:
                self._length, self._opening = len(data), data[: end - len(payloads[0])]
            for payload in payloads:
                tokens = self._count(payload)
                if tokens is None or not answer.rise(tokens, now):
                    self._hear(answer, payload)
        except GARBLED as error:
            self._end("garbled", str(error))
        if answer.end is not None and self._answer is not None:
            self._end(answer.end)
        return True

    def _hear(self, answer: Answer, payload: bytes) -> None:
        delta = self._read(payload)
        if delta is not None:
            answer.take(delta, self._now_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """The server closed, or the network broke; a body without a length ends so in due form."""
        self._transport = None
        answer, self._answer = self._answer, None
        if answer is None:
            return
        now = time.perf_counter()
        if (
            self._untouched and self._served
        ):  # the server had closed an idle connection: nobody saw the request
            answer.unsent()
        elif answer.status not in (None, 200):
            answer.close("status", now, self._status_words(answer))
        elif answer.finish is not None:
            answer.finished(now)
        else:
            answer.close("closed", now, f"closed after {answer.total} tokens" + (f": {exc}" if exc else ""))

    # What httptools calls.

    def on_headers_complete(self) -> None:
        """The status is known."""
        if self._answer is not None:
            self._answer.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        """Some of the body, with chunk sizes taken out."""
        answer = self._answer
        if answer is None:
            return
        if answer.status != 200:
            self._fault += body[: MAX_FAULT_BYTES - len(self._fault)]
            return
        self._bytes_without_body = 0
        try:
            for payload in self._events.feed(body):
                self._hear(answer, payload)
        except (EventTooLong, *GARBLED) as error:
            self._end("garbled", str(error))
            return
        if answer.end is not None:
            self._end(answer.end)

    def on_chunk_header(self) -> None:
        """The size of a chunk is known."""
        self._at_chunk = False

    def on_chunk_complete(self) -> None:
        """All of a chunk is there."""
        self._at_chunk = self._answer is not None and self._answer.status == 200

    def on_message_complete(self) -> None:
        """The response ended in due form."""
        answer = self._answer
        if answer is None:
            return
        if answer.status is not None and answer.status < 200:  # an interim answer: the real one follows
            answer.status = None
            return
        self._answer = None
        if answer.status != 200:
            answer.close("status", self._now_s, self._status_words(answer))
        else:
            answer.finished(self._now_s)
        self._served += 1
        if not self._parser.should_keep_alive() and self._transport is not None:
            self._transport.abort()

    def _end(self, end: End, words: str | None = None) -> None:
        answer = self._answer
        self.drop(
            end, words if answer is None or answer.total == 0 else f"{words} (after {answer.total} tokens)"
        )

    def _status_words(self, answer: Answer) -> str:
        said = " ".join(self._fault.decode(errors="replace").split())
        return f"status {answer.status}" + (f": {said}" if said else "")


async def connect(address: Address, dialect: Dialect, pace: Pace) -> Connection:
    """Open a connection.

    Raises:
        OSError: nobody listens, the name is unknown, or its certificate is not trusted.
        TimeoutError: no handshake within `CONNECT_S`.
    """
    context = ssl.create_default_context() if address.tls else None
    # Not wait_for: before Python 3.12 it may swallow a cancellation, and the level's end with it.
    async with asyncio.timeout(CONNECT_S):
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: Connection(dialect, pace), address.host.strip("[]"), address.port, ssl=context
        )
    return connection
