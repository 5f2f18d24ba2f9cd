"""Progress for people, on stderr: lines to keep, and one line of reading that is written over and gone at the end."""

import contextlib
import sys
import time
from collections.abc import Callable

from stepline.tasks import progress

AFTER_S = 0.5
"""Reading that is done by then needs no progress."""
EVERY_S = 0.1
NAME = 48
"""Characters of a file's name that fit a line of 80 beside the rest."""


class Progress(progress.Progress):
    """Tells on stderr, with what a terminal would act on taken out; nothing where the user wants it quiet."""

    def __init__(self, *, quiet: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._quiet, self._on, self._clock = quiet, not quiet and sys.stderr.isatty(), clock
        self._next = clock() + AFTER_S
        self._name, self._shown = "", False

    def tell(self, *lines: str) -> None:
        """A line each, at once."""
        if self._quiet:
            return
        for line in lines:
            with contextlib.suppress(OSError):  # a terminal that went away stops nothing
                print(_printable(line), file=sys.stderr, flush=True)

    def file(self, name: str) -> None:
        """A file is about to be read."""
        self._name = _short(name)

    def bytes(self, done: int, total: int) -> None:
        """So many of all bytes are read."""
        if total:
            self._show(f"reading {self._name}: {100 * done // total} % of {total / 1e6:,.0f} MB")

    def trace_bytes(self, name: str, done: int) -> None:
        """So many bytes of a trace are read."""
        self._show(f"reading {_short(name)}: {done / 1e6:,.0f} MB")

    def traces(self, done: int, total: int) -> None:
        """So many of all traces are condensed."""
        if total > 1:
            self._show(f"read {done} of {total} traces")

    def _show(self, text: str) -> None:
        if not self._on or self._clock() < self._next:
            return
        self._next = self._clock() + EVERY_S
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        self._shown = True

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = False


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)


def _short(name: str) -> str:
    printable = _printable(name)
    return printable if len(printable) <= NAME else f"…{printable[1 - NAME :]}"
