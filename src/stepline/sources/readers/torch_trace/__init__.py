"""Reads a PyTorch profiler trace (Kineto's Chrome trace JSON, plain or gzip) into columns.

In one bounded pass; a large file is decoded by two processes.
"""

from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepline.evidence.trace_arrays import RawTrace

SPLIT_FROM_BYTES = 6 << 20
"""Bytes on disk from which a second process (0.3 s to start) pays: about 100 MB of JSON."""

Progress = Callable[[int], None]


def read(path: Path, progress: Progress | None = None, *, processes: int = 1) -> "RawTrace":
    """Read one trace file; damaged parts are skipped, counted and named in the doubts.

    Args:
        path: the file; its content decides between plain and gzip.
        progress: called with the decompressed bytes read so far.
        processes: from two on, a large file is shared with a second one; the answer is the same.

    Raises:
        UnreadableEvidence: when the file holds no trace at all.
    """
    if processes > 1 and path.stat().st_size >= SPLIT_FROM_BYTES:
        from stepline.sources.readers.torch_trace.helper import CannotShare, Helper  # noqa: PLC0415

        with closing(Helper()) as helper, suppress(CannotShare):  # it starts while the rest is imported
            from stepline.sources.readers.torch_trace import reading  # noqa: PLC0415 - numpy

            return reading.read(path, progress, helper)
    from stepline.sources.readers.torch_trace import reading  # noqa: PLC0415

    return reading.read(path, progress)
