"""Copies the server's log into the bundle while it grows, without the keys that may stand in it."""

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

WHOLE_BYTES = 4 << 20
"""A log up to this size is kept from its start: start-up lines and what the server did before."""
HEAD_BYTES = 1 << 20
"""Of a longer log, the last start-up is kept, or its opening where none is found: a few hundred kB at most."""
BANNER_BYTES = 4 << 10
"""Lines before the settings that belong to a start: its version stands there."""
MAX_BYTES = 256 << 20


ENDING_BYTES = 256
"""Enough of a log's last lines to know them again: every line has its time."""


class LogMark(NamedTuple):
    """Where a log ended at some moment: what a restarted server appends begins there."""

    log: Path
    size: int
    ending: bytes

    @classmethod
    def of(cls, log: Path) -> Self:
        """The end of a log now; raises OSError where it cannot be read."""
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - ENDING_BYTES))
            return cls(log, size, file.read(ENDING_BYTES))

    def begins(self, log: Path) -> int:
        """Where news begin in a log: at the mark, or at the start of another file or of one written anew."""
        if log != self.log:
            return 0
        with log.open("rb") as file:
            file.seek(max(0, self.size - ENDING_BYTES))
            return self.size if file.read(len(self.ending)) == self.ending else 0


class LogCopy:
    """Follows one file. A cut is marked by a line of its own, which no reader takes for a report."""

    def __init__(
        self,
        log: Path,
        copy: Path,
        clean: Callable[[str], str],
        start_mark: bytes | None = None,
        since: LogMark | None = None,
    ) -> None:
        """Copy what is there already, through `clean`, which takes keys out.

        `start_mark` stands in a line of every start-up: a log that is appended to may begin with another server's.
        Of what was there before `since` nothing is copied.

        Raises:
            OSError: when the log cannot be read.
        """
        self._log, self._copy, self._clean = log, copy, clean
        self._written = 0
        size = log.stat().st_size
        self._at = 0 if since is None else since.begins(log)
        self._rest = b""
        if size - self._at > WHOLE_BYTES:
            with log.open("rb") as file:
                file.seek(_last_start(file, start_mark))
                head = file.read(HEAD_BYTES)
                file.seek(size - 1)
                whole = file.read(1) == b"\n"
            self._write(head[: head.rfind(b"\n") + 1])
            self._write(b"(stepline: lines of earlier times left out)\n")
            self._at = size
            self._rest = b"" if whole else b"\0"  # a line that began before is dropped below
        self.catch_up()

    def catch_up(self) -> None:
        """Append whole lines that came since; a log that became shorter was rotated and is read anew."""
        try:
            if self._log.stat().st_size < self._at:
                self._at, self._rest = 0, b""
            with self._log.open("rb") as file:
                file.seek(self._at)
                while chunk := file.read(1 << 20):
                    self._at += len(chunk)
                    self._feed(chunk)
        except OSError:
            return  # what was copied stays; the diagnosis sees where the log ends

    def _feed(self, chunk: bytes) -> None:
        lines, newline, rest = (self._rest + chunk).rpartition(b"\n")
        if newline:
            if lines.startswith(b"\0"):
                lines = lines.partition(b"\n")[2]
            self._write(lines + newline)
        self._rest = rest if newline else lines + rest
        if len(self._rest) > 1 << 20:
            self._rest = b"\0"  # a line of over 1 MiB is no report

    def _write(self, lines: bytes) -> None:
        if self._written > MAX_BYTES:
            return
        text = self._clean(lines.decode("utf-8", "replace"))
        with self._copy.open("a", encoding="utf-8") as copy:
            self._written += copy.write(text)


def _last_start(file: BinaryIO, mark: bytes | None) -> int:
    """Where the line of the last mark begins, less the banner before it; 0 without any."""
    if mark is None:
        return 0
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = content.rfind(mark)
        return 0 if found < 0 else content.rfind(b"\n", 0, max(0, found - BANNER_BYTES)) + 1
