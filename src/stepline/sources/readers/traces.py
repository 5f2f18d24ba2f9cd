"""Finds trace files by content and reads each with the reader of its format."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.errors import UnreadableEvidence

if TYPE_CHECKING:
    from stepline.evidence.trace_arrays import RawTrace

_SQLITE = b"SQLite format 3\x00"
_EVENTS = re.compile(rb'"traceEvents"\s*:|^\s*\[\s*\{\s*"(?:ph|name|cat|pid)"\s*:')
_SUFFIXES = (".json", ".json.gz", ".gz", ".sqlite", ".trace")
"""What is opened in folders; a file named outright is opened whatever its name."""


def find(paths: Iterable[Path]) -> list[Path]:
    """Trace files among the paths and below folders, in order.

    Raises:
        UnreadableEvidence: when a named path does not exist or nothing below it is a trace.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            files = sorted(f for f in path.rglob("*") if f.is_file() and f.name.endswith(_SUFFIXES))
            inside = [file for file in files if sort(file)]
            if not inside:
                raise UnreadableEvidence(
                    f"no trace below {path}: looked for PyTorch profiler JSON and Nsight sqlite"
                )
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise UnreadableEvidence(f"{path} does not exist")
    return list(dict.fromkeys(found))


def sort(path: Path) -> str | None:
    """`torch` or `nsys` by content, None for anything else."""
    from stepline.sources.readers.torch_trace.stream import CutShort, pieces  # noqa: PLC0415 - needs isal

    with path.open("rb") as file:
        if file.read(16) == _SQLITE:
            return "nsys"
    try:
        start = next(iter(pieces(path)), b"")
    except CutShort:
        return None
    return "torch" if _EVENTS.search(start) else None


def read(
    path: Path, progress: Callable[[int], None] | None = None, *, processes: int = 1
) -> list["RawTrace"]:
    """One trace a process recorded in the file; a large one is shared by two of `processes`.

    Raises:
        UnreadableEvidence: when the file is no trace.
    """
    if sort(path) == "nsys":
        from stepline.sources.readers import nsys_sqlite  # noqa: PLC0415

        return nsys_sqlite.read(path)
    from stepline.sources.readers import torch_trace  # noqa: PLC0415

    return [torch_trace.read(path, progress, processes=processes)]
