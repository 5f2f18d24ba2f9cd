"""The part of a file's events that one process decodes."""

import re
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from stepline.sources.readers.torch_trace.columns import Block, Columns
from stepline.sources.readers.torch_trace.events import decode, decode_patiently

_FRACTION = re.compile(rb'"ts"\s*:\s*"?\d{13,}\.\d*[1-9]')


class Answer(NamedTuple):
    """What came of a share."""

    strings: list[str]
    blocks: list[Block]
    events: int
    skipped: int
    odd_times: int
    ended: bool
    """Whether the event list ended in one of the blocks."""


class Share:
    """Blocks of whole events, decoded one after the other."""

    def __init__(self) -> None:
        _keep_freed_memory()
        self.columns = Columns()
        self.events = self.skipped = 0
        self.ended = False
        self._text_times = self._decided = False

    def take(self, number: int, text: bytes | memoryview, *, last: bool = False) -> bytes | None:
        """Decode `[event, ...]`; the patient way where the fast one fails, and for the end of the list.

        Returns:
            what follows the end of the event list, None where it does not end in this block.
        """
        events: list[Any] | None = None
        tail = None
        if not last:
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                events = self._exact(text)
        if events is None:
            body = bytes(text[1:-1])
            events, broken, tail = decode_patiently(body, text_times=self._text_times)
            if self._wants_text(events, body):
                events, broken, tail = decode_patiently(body, text_times=True)
            cut_off = last and tail is None  # then the last piece is no damage, only unfinished
            self.skipped += len(broken[:-1] if cut_off else broken)
        self.events += len(events)
        self.columns.add(number, events)
        self.ended |= tail is not None
        return tail

    def answer(self) -> Answer:
        """All that was decoded."""
        columns = self.columns
        return Answer(
            list(columns.strings), columns.blocks, self.events, self.skipped, columns.odd_times, self.ended
        )

    def _exact(self, text: bytes | memoryview) -> list[Any]:
        """Events with times as floats, or as text once floats would lose nanoseconds."""
        events = decode(text, text_times=self._text_times)
        return decode(text, text_times=True) if self._wants_text(events, text) else events

    def _wants_text(self, events: list[Any], body: bytes | memoryview) -> bool:
        """Whether these events must be decoded again with times as text; decided at the first large times."""
        if self._decided or not _large_times(events):
            return False
        self._decided = True
        self._text_times = bool(_FRACTION.search(body))
        return self._text_times


def _large_times(events: list[Any]) -> bool:
    """Whether times reach 2**43 µs, where a float64 no longer tells nanoseconds apart."""
    sample = events[:: max(1, len(events) // 1000)]  # one file writes all its times alike
    return any(abs(event.ts) >= 2.0**43 for event in sample if event.cat is not None)


def _keep_freed_memory() -> None:
    """Have the C library keep what is freed: giving it back after every block costs a page fault for each 4 KB.

    glibc raises its thresholds as one large block is freed (mallopt(3), M_MMAP_THRESHOLD), which halves the
    faults of a reading; elsewhere this does nothing.
    """
    bytearray(24 << 20)
