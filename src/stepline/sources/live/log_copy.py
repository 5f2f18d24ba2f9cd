"""Copies the server's log into the bundle while it grows, without the keys that may stand in it."""

from collections.abc import Callable
from pathlib import Path

WHOLE_BYTES = 4 << 20
"""A log up to this size is kept from its start: start-up lines and what the server did before."""
HEAD_BYTES = 1 << 20
"""Of a longer log, its opening is kept: start-up takes a few hundred kB at most."""
MAX_BYTES = 256 << 20


class LogCopy:
    """Follows one file. A cut is marked by a line of its own, which no reader takes for a report."""

    def __init__(self, log: Path, copy: Path, clean: Callable[[str], str]) -> None:
        """Copy what is there already, through `clean`, which takes keys out.

        Raises:
            OSError: when the log cannot be read.
        """
        self._log, self._copy, self._clean = log, copy, clean
        self._written = 0
        size = log.stat().st_size
        self._at = 0
        self._rest = b""
        if size > WHOLE_BYTES:
            with log.open("rb") as file:
                head = file.read(HEAD_BYTES)
            self._write(head[: head.rfind(b"\n") + 1])
            self._write(b"(stepline: lines of earlier times left out)\n")
            self._at = size
            self._rest = b"\0"  # the next line began before: dropped below
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
