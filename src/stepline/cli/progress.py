"""Reading that takes long says how far it is: one line on stderr, on a terminal alone, gone when it is done."""

import sys
import time
from collections.abc import Callable

AFTER_S = 0.5
"""Reading that is done by then needs no progress."""
EVERY_S = 0.1
NAME = 48
"""Characters of a file's name that fit a line of 80 beside the rest."""


class Progress:
    """What `sources.read` tells, as one line that is written over."""

    def __init__(self, *, quiet: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._on, self._clock = not quiet and sys.stderr.isatty(), clock
        self._next = clock() + AFTER_S
        self._name, self._shown = "", False

    def file(self, name: str) -> None:
        """A file is about to be read."""
        printable = "".join(c if c.isprintable() else "?" for c in name)
        self._name = printable if len(printable) <= NAME else f"…{printable[1 - NAME :]}"

    def bytes(self, done: int, total: int) -> None:
        """So many of all bytes are read."""
        if not self._on or not total or self._clock() < self._next:
            return
        self._next = self._clock() + EVERY_S
        share = f"{100 * done // total} % of {total / 1e6:,.0f} MB"
        print(f"\r\x1b[Kreading {self._name}: {share}", end="", file=sys.stderr, flush=True)
        self._shown = True

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = False
