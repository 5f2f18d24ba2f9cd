"""Progress for people, on stderr."""

import contextlib
import sys


class Teller:
    """Writes a line at once, with what a terminal would act on taken out; nothing where the user wants it quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def __call__(self, *lines: str) -> None:
        """Tell these lines."""
        if self._quiet:
            return
        for line in lines:
            printable = "".join(c if c.isprintable() else "?" for c in line)
            with contextlib.suppress(OSError):  # a terminal that went away stops nothing
                print(printable, file=sys.stderr, flush=True)
