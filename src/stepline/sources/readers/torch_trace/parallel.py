"""One large file read by two processes, each decoding every other piece."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from stepline.evidence.trace_arrays import Calls, Column, GpuWork, Operators, RawTrace, Spans
from stepline.sources.readers import torch_trace
from stepline.sources.readers.torch_trace.columns import TEXT_THREADS

_TEXTS = {"name", "shapes", "dtypes", "collective"}
"""Columns that hold indices into the strings."""


def read(path: Path, progress: Callable[[int], None] | None = None) -> RawTrace:
    """As `torch_trace.read`, with a second process; the answer is the same.

    Raises:
        UnreadableEvidence: when the file holds no trace at all.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        other = pool.submit(torch_trace.read, path, None, (1, 2))
        mine = torch_trace.read(path, progress, (0, 2))
        return joined(mine, other.result())


def joined(first: RawTrace, second: RawTrace) -> RawTrace:
    """Two parts of one file as one trace."""
    index = {text: number for number, text in enumerate(first.strings)}
    moved = np.array([index.setdefault(text, len(index)) for text in second.strings], np.int64)
    tables = {
        name: _table(getattr(first, name), getattr(second, name), moved)
        for name in ("gpu", "calls", "operators", "frames", "marks", "overheads")
    }
    said = max(
        first, second, key=lambda part: (len(part.devices), part.base_ns is not None, part.rank is not None)
    )
    return replace(
        said,
        **tables,
        strings=list(index),
        events=first.events + second.events,
        skipped=first.skipped + second.skipped,
        doubts=first.doubts + second.doubts,
    )


T = TypeVar("T", GpuWork, Spans, Calls, Operators)


def _table(first: T, second: T, moved: Column) -> T:
    columns: dict[str, Any] = {}
    order = np.argsort(np.concatenate([first.start_ns, second.start_ns]), kind="stable")
    for field in fields(first):
        own, other = getattr(first, field.name), getattr(second, field.name)
        if field.name in _TEXTS and len(other):
            other = np.where(other >= 0, moved[other], -1)
        if field.name == "thread" and (text := other <= TEXT_THREADS).any():
            other = np.where(text, TEXT_THREADS - moved[np.where(text, TEXT_THREADS - other, 0)], other)
        columns[field.name] = np.concatenate([own, other])[order]
    return type(first)(**columns)
