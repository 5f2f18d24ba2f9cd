"""What all lines that differ only in their digits have in common: which numbers stand where.

With every digit made 0 a line is its shape. Lines of one shape have the same words, and numbers of the same
length at the same places, so a reader learns a shape from one line and only the digits of the others are looked at.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from stepline.evidence.scheduler import DecodeReport, PrefillReport

ZEROS = bytes.maketrans(b"123456789", b"000000000")
"""Makes a line its shape."""
_PLAIN = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,15}))?")
MAX_WRAPS = 4
"""Lines that may go on with a line before them: one of 400 characters wraps into five on a terminal of 80 columns."""
MAX_DIGITS = 15
"""A number of so many digits is exact as a float, so dividing it by a power of ten rounds as reading it does."""


class Number(NamedTuple):
    """Where an unsigned decimal number stands in a line."""

    start: int
    digits: int
    decimals: int = 0
    divisor: float = 1.0
    """100 for percentages."""


class Template(NamedTuple):
    """How the lines of one shape are read."""

    record: type[DecodeReport] | type[PrefillReport]
    prefix: tuple[int, int]
    """Where time and rank stand, before the message."""
    numbers: dict[str, Number]
    """By field of the record, or by a name that the reader's `complete` makes a field of."""
    graph: bool | None = None
    instrument: str = "window"

    def moved(self, place: Callable[[int], int]) -> "Template":
        """The template of a line in which all of this stands elsewhere."""
        begin, end = self.prefix
        numbers = {name: one._replace(start=place(one.start)) for name, one in self.numbers.items()}
        return self._replace(prefix=(place(begin), place(end)), numbers=numbers)


class Templates(Protocol):
    """What a reader knows of its lines that come in great numbers.

    The reader of single lines is the judge: a line that is learned gives the record that it gives there.
    """

    def learn(self, line: str) -> Template | None:
        """How lines of this line's shape are read; None for whatever only the reader of single lines can tell."""

    def complete(self, columns: dict[str, Any]) -> None:
        """Make fields of what was read: columns of floats, NaN where a line has none."""

    def time_of(self, prefix: str) -> float | None:
        """Seconds since the epoch from what stands before a message."""

    def goes_on(self, line: str) -> bool:
        """True when the lines after this one, which was not learned, may belong to it."""


def number(text: str, start: int, divisor: float = 1.0) -> Number | None:
    """The place of a number that is written `text` at `start`; None unless it is plain and exact as a float."""
    found = _PLAIN.fullmatch(text)
    if found is None or len(found[1]) + len(found[2] or "") > MAX_DIGITS:
        return None
    return Number(start, len(found[1]), len(found[2] or ""), divisor)
