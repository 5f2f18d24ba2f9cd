"""Server-sent events out of a body that arrives in any pieces."""

MAX_EVENT_BYTES = 1 << 20
"""An event beyond this is no answer of tokens; without a bound a server could fill the client's memory."""


class EventTooLong(ValueError):
    """An event did not end within `MAX_EVENT_BYTES`."""


class EventSplitter:
    """Splits one body into the payloads of its events, whatever the line ends and wherever the reads cut it.

    Follows the WHATWG event stream grammar: lines end with LF, CR or CRLF, an empty line ends an event, the
    `data` lines of one event are joined by LF, comments and other fields say nothing here, and an event that
    the body's end cuts off is dropped.
    """

    __slots__ = ("_after_cr", "_rest", "_searched")

    def __init__(self) -> None:
        self._rest = bytearray()
        self._searched = 0
        self._after_cr = False

    @property
    def empty(self) -> bool:
        """Nothing is kept of what came: the next piece begins an event."""
        return not self._rest and not self._after_cr

    def feed(self, piece: bytes) -> list[bytes]:
        """The payloads of the events that end in this piece.

        Raises:
            EventTooLong: an event passed `MAX_EVENT_BYTES`.
        """
        # Servers write one small event a chunk: one `data` line and an empty one.
        if (
            piece.find(b"\n") == len(piece) - 2
            and piece.endswith(b"\n")
            and piece.startswith(b"data: ")
            and not self._rest
            and b"\r" not in piece
            and len(piece) <= MAX_EVENT_BYTES
        ):
            return [piece[6:-2]]
        return self._feed_slowly(piece)

    def _feed_slowly(self, piece: bytes) -> list[bytes]:
        if self._after_cr and piece.startswith(b"\n"):
            piece = piece[1:]
            self._after_cr = False
        if b"\r" in piece:
            self._after_cr = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        elif piece:
            self._after_cr = False
        self._rest += piece
        payloads, start = [], 0
        # One byte back: the first LF of the empty line may have come with an earlier piece.
        end = self._rest.find(b"\n\n", max(0, self._searched - 1))
        while end >= 0:
            payload = _payload(bytes(self._rest[start:end]))
            if payload is not None:
                payloads.append(payload)
            start = end + 2
            end = self._rest.find(b"\n\n", start)
        del self._rest[:start]
        self._searched = len(self._rest)
        if len(self._rest) > MAX_EVENT_BYTES:
            raise EventTooLong(f"an event did not end within {MAX_EVENT_BYTES} bytes")
        return payloads


def events_of_whole_chunks(data: bytes) -> list[bytes] | None:
    """The payloads of a piece of chunked HTTP that is whole chunks with one event of one `data` line each.

    None for anything else, which a parser has to take: part of a chunk, other fields, comments, the last chunk.
    """
    *chunks, rest = data.split(b"\n\n\r\n")
    if rest or not chunks:
        return None
    payloads = []
    for chunk in chunks:
        size, _, line = chunk.partition(b"\r\n")
        if (
            size != b"%x" % (len(line) + 2)
            or not line.startswith(b"data: ")
            or b"\n" in line
            or b"\r" in line
        ):
            return None
        payloads.append(line[6:])
    return payloads


def _payload(event: bytes) -> bytes | None:
    if len(event) > MAX_EVENT_BYTES:
        raise EventTooLong(f"an event of {len(event)} bytes")
    found = [
        line[6:] if line.startswith(b"data: ") else line[5:]
        for line in event.split(b"\n")
        if line.startswith(b"data:")
    ]
    return b"\n".join(found) if found else None
