"""Reads `/metrics` once a second beside the load and appends each answer to one file, with its time."""

import contextlib
import threading
import time
from pathlib import Path
from typing import Self

from stepline.sources.http import Http, Unreachable

PERIOD_S = 1.0
MAX_BYTES = 256 << 20
"""Of one recording: a scrape kept is some ten kB, and a recording has a few hundred."""
_DROPPED = (b"#", b"python_", b"process_")
"""Comments, and what every Python process exports about itself."""


class Scraper:
    """A thread between `__enter__` and `__exit__`; a scrape that fails is left out, never a zero.

    So is one that the disk has no room for, and all beyond `MAX_BYTES`.
    """

    def __init__(self, http: Http, path: Path) -> None:
        self._http, self._path = http, path
        self._written = 0
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="metrics scraper", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.scrape()

    def _run(self) -> None:
        while True:
            self.scrape()
            if self._stop.wait(PERIOD_S):
                return

    def scrape(self) -> None:
        """One scrape now; also called from outside at the edges of a level."""
        try:
            reply = self._http.get("/metrics", timeout_s=5.0)
        except Unreachable:
            return
        if not reply.ok:
            return
        kept = (
            line
            for line in reply.body.split(b"\n")
            if line and not line.startswith(_DROPPED) and b"_bucket{" not in line and b"_created" not in line
        )
        text = f"# scraped at {time.time():.3f}\n".encode() + b"\n".join(kept) + b"\n"
        with self._lock, contextlib.suppress(OSError):
            if self._written + len(text) <= MAX_BYTES:
                with self._path.open("ab") as file:
                    self._written += file.write(text)
