"""Lines of a log as engines wrote them: colours, progress bars and log collectors' wrappings taken off."""

import re
from collections.abc import Callable, Iterator
from typing import IO, Any

import msgspec

CHUNK_BYTES = 1 << 20
READ_BYTES = 1 << 16
MAX_LINE_CHARS = 1 << 20
"""Longer lines are cut: a start-up dump is under 30 kB, and a hostile line must not fill the memory."""

_ANSI = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_MESSAGE = ("message", "msg", "log", "event", "text", "body", "MESSAGE")
_TIME = ("asctime", "timestamp", "@timestamp", "time", "ts", "datetime", "created")


def chunks(stream: IO[bytes], size: Callable[[], int] = lambda: CHUNK_BYTES) -> Iterator[bytes]:
    """Whole lines of a stream in pieces of about `size()` bytes, asked for each piece.

    A damaged stream raises only after everything that stood before the damage was handed out.
    """
    held: list[bytes] = []
    held_bytes = 0
    damage: Exception | None = None
    while True:
        try:
            block = _read_some(stream)
        except (EOFError, OSError, ValueError) as error:
            damage, block = error, b""
        if not block:
            break
        held.append(block)
        held_bytes += len(block)
        if held_bytes < size():
            continue
        end = block.rfind(b"\n") + 1
        if not end:
            block = b"".join(held)
            held = [block]
            end = block.rfind(b"\n") + 1 or (held_bytes if held_bytes > MAX_LINE_CHARS else 0)
        if end:
            held[-1] = block[:end]
            yield b"".join(held)
            held, held_bytes = [block[end:]], len(block) - end
    if held_bytes:
        yield b"".join(held)
    if damage is not None:
        raise damage


def _read_some(stream: IO[bytes]) -> bytes:
    """A small read: when a compressed stream is damaged, decompressors lose what one call had gathered."""
    return stream.read(READ_BYTES)


def cut_before(chunk: bytes, marks: tuple[bytes, ...]) -> Iterator[tuple[bytes, bool]]:
    """Whole lines in pieces, each line with one of the marks a piece of its own; true for those."""
    begin = 0
    places = sorted({found for mark in marks for found in _places(chunk, mark)})
    for place in places:
        start = chunk.rfind(b"\n", 0, place) + 1
        if start < begin:
            continue  # two marks in one line
        if start > begin:
            yield chunk[begin:start], False
        begin = chunk.find(b"\n", place) + 1 or len(chunk)
        yield chunk[start:begin], True
    if begin < len(chunk):
        yield chunk[begin:], False


def _places(chunk: bytes, mark: bytes) -> Iterator[int]:
    place = chunk.find(mark)
    while place >= 0:
        yield place
        place = chunk.find(mark, place + len(mark))


def without_colours(text: bytes) -> bytes:
    """The text without terminal escape sequences."""
    return _ANSI.sub(b"", text) if b"\x1b" in text else text


def split(text: str) -> list[str]:
    """Lines at line feeds alone, so that their numbers agree with an editor's; the last feed ends a line."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines


def segments(line: str) -> list[str]:
    """What stands between carriage returns: a progress bar redraws itself within one line."""
    if "\r" not in line:
        return [line]
    return [part for part in line.split("\r") if part]


def unwrapped(line: str) -> str:
    """The message inside a JSON log record, with its time before it as engines write it; else the line.

    Engines write JSON under a logging config of the user's, Docker's json-file driver wraps each line in
    `log`, and collectors use a dozen names for message and time.
    """
    if not line.startswith("{") or not line.rstrip().endswith("}"):
        return line
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return line
    if not isinstance(record, dict):
        return line
    message = next((record[name] for name in _MESSAGE if isinstance(record.get(name), str)), None)
    if message is None:
        return line
    stamp = next((record[name] for name in _TIME if record.get(name)), None)
    return _with_time(message.rstrip("\n"), stamp, record)


def _with_time(message: str, stamp: Any, record: dict[str, Any]) -> str:
    ranks = "".join(
        f" {tag}{record[name]}"
        for tag, name in (("DP", "dp_rank"), ("PP", "pp_rank"), ("TP", "tp_rank"))
        if isinstance(record.get(name), int)
    )
    if message.startswith("[") or stamp is None:
        return message
    if isinstance(stamp, int | float):
        from datetime import UTC, datetime  # noqa: PLC0415  # only JSON logs with numeric times

        seconds = (
            stamp / 1000 if stamp > 1e11 else float(stamp)
        )  # 1e11 s is the year 5138: it is milliseconds
        try:
            stamp = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        except (ValueError, OverflowError, OSError):
            return message
    return f"[{stamp}{ranks}] {message}"
