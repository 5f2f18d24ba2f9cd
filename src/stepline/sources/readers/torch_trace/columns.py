"""Decoded events, block by block, into rows of integers."""

from collections import defaultdict
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from stepline.evidence.trace_arrays import COPY, FILL, KERNEL, Calls, Column, GpuWork, Operators, Spans
from stepline.sources.readers.torch_trace.arguments import Args
from stepline.sources.readers.torch_trace.events import AnySpan

LONGEST_NS = 600 * 10**9
"""No single kernel, copy or call of a served model takes ten minutes; unset ends overflow far beyond it."""

SORTS = {
    "kernel": KERNEL, "gpu_memcpy": COPY, "memcpy": COPY, "gpu_memset": FILL, "memset": FILL,
    "concurrent_kernel": KERNEL, "mtia_kernel": KERNEL,
}  # fmt: skip
CALLS = ("cuda_runtime", "cuda_driver", "runtime", "hip_runtime", "mtia_runtime", "privateuse1_runtime")
OPERATORS = ("cpu_op", "operator")
SPANS = {"python_function": "frames", "user_annotation": "marks", "overhead": "overheads"}

TABLES: dict[str, type[GpuWork | Spans]] = {
    "gpu": GpuWork, "calls": Calls, "operators": Operators, "frames": Spans, "marks": Spans, "overheads": Spans,
}  # fmt: skip
COLUMNS = {table: tuple(field.name for field in fields(kind)) for table, kind in TABLES.items()}
"""The rows of a `Block`'s tables: the fields of the records that they become."""

TEXT_THREADS = -(1 << 40)
"""A thread known only by a text, such as "stream 7", is this number less the text's index."""


@dataclass(frozen=True)
class Block:
    """What one stretch of the file came to: per table an integer array with a row a column of `COLUMNS`.

    Names, launch shapes and other texts are indices into the strings of the process that read it, −1 for none.
    """

    number: int
    strings: int
    """Known once it was read."""
    tables: list[tuple[str, Column]]


class Strings(defaultdict[str, int]):
    """Every distinct text once, numbered as it is first looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.default_factory = self.__len__


class _RawTexts(dict[bytes, int]):
    """Indices in `strings` of JSON texts by their bytes; −1 for nothing."""

    def __init__(self, strings: Strings) -> None:
        super().__init__({b"": -1})
        self.strings = strings

    def __missing__(self, raw: bytes) -> int:
        self[raw] = number = self.strings[raw.decode("utf-8", "replace")]
        return number


class Columns:
    """Collects the kept events of one process."""

    def __init__(self) -> None:
        self.strings = Strings()
        self.blocks: list[Block] = []
        self.odd_times = 0
        self._texts = _RawTexts(self.strings)
        self._tables: list[tuple[str, Column]] = []

    def add(self, number: int, events: list[Any]) -> None:
        """Sort the spans of one decoded block into their columns.

        List comprehensions throughout: they read a field of a record in a third of an attrgetter's time.
        """
        groups: defaultdict[str | None, list[AnySpan]] = defaultdict(list)
        for event in events:
            groups[event.cat].append(event)
        groups.pop(None, None)  # flows, instants, metadata
        for written, group in groups.items():
            cat = (written or "").lower()
            if cat in SORTS:
                self._gpu(group, SORTS[cat])
            elif cat in CALLS:
                self._keep("calls", group, _ints([event.args.correlation for event in group]), thread=True)
            elif cat in OPERATORS:
                self._operators(group)
            elif cat in SPANS:
                self._keep(SPANS[cat], group, thread=True)
        self.blocks.append(Block(number, len(self.strings), self._tables))
        self._tables = []

    def _gpu(self, group: list[AnySpan], sort: int) -> None:
        args = [event.args for event in group]
        self._keep(
            "gpu",
            group,
            np.full(len(args), sort, np.int64),
            _ints([arg.device for arg in args]),
            _ints([arg.stream for arg in args]),
            _ints([arg.correlation for arg in args]),
            _external(args),
            _ints([arg.registers for arg in args]),
            _ints([arg.shared_bytes for arg in args]),
            self._indices([arg.grid for arg in args]),
            self._indices([arg.block for arg in args]),
            _ints([arg.moved_bytes for arg in args]),
            _ints([arg.graph_node for arg in args]),
            self._indices([arg.collective for arg in args]),
        )

    def _operators(self, group: list[AnySpan]) -> None:
        args = [event.args for event in group]
        shapes, dtypes = [arg.shapes for arg in args], [arg.dtypes for arg in args]
        texts = self._indices(shapes), self._indices(dtypes)
        self._keep("operators", group, _external(args), *texts, thread=True)

    def _indices(self, raws: list[msgspec.Raw]) -> Column:
        """Indices of undecoded JSON; decoding is left to the distinct ones, or the few that are shown."""
        known = self._texts
        whole = b"\0".join(raws)  # much faster than bytes of each; a NUL cannot stand in JSON
        return _ints([known[text] for text in whole.split(b"\0")])

    def _keep(self, table: str, group: list[AnySpan], *columns: Column, thread: bool = False) -> None:
        """Append name, start and end, the thread where asked for, and the given columns of a group."""
        start, length = _times_ns([event.ts for event in group]), _times_ns([event.dur for event in group])
        strings = self.strings
        names = _ints([strings[event.name] for event in group])
        threads = (self._threads([event.tid for event in group]),) if thread else ()
        rows = np.stack((names, start, start + length, *threads, *columns))
        good = (start > 0) & (length >= 0) & (length < LONGEST_NS)
        if not good.all():
            self.odd_times += int((~good).sum())
            rows = rows[:, good]
        self._tables.append((table, rows))

    def _threads(self, ids: list[Any]) -> Column:
        """Thread ids as numbers; a name such as "stream 7" or "" is numbered by its text."""
        if str in set(map(type, ids)):
            ids = [self._thread(tid) if type(tid) is str else tid for tid in ids]
        return _ints(ids)

    def _thread(self, text: str) -> int:
        return int(text) if text.lstrip("-").isdigit() else TEXT_THREADS - self.strings[text]


def _ints(values: list[int]) -> Column:
    try:
        return np.fromiter(values, np.int64, len(values))
    except OverflowError:  # a damaged number counts as not recorded
        return np.array([value if abs(value) < 2**63 else -1 for value in values], np.int64)


def _external(args: list[Args]) -> Column:
    """The operator's external id, however it is spelled."""
    ids = _ints([arg.external for arg in args])
    if (ids < 0).any():
        ids = np.where(ids < 0, _ints([arg.external_2021 for arg in args]), ids)
    return ids


def _times_ns(times: list[Any]) -> Column:
    """Microseconds to integer nanoseconds, exactly: from floats below 2**43 µs or whole, else from text."""
    if times and not isinstance(times[0], float):
        return np.array([_text_ns(bytes(raw)) for raw in times], np.int64)
    values: NDArray[np.float64] = np.fromiter(times, np.float64, len(times))
    values[~(np.abs(values) < 9e15)] = -1.0
    whole = np.floor(values)
    return whole.astype(np.int64) * 1000 + np.rint((values - whole) * 1000).astype(np.int64)


def _text_ns(raw: bytes) -> int:
    try:
        ns = int((Decimal(raw.strip(b'"').decode()) * 1000).to_integral_value())
    except (InvalidOperation, ValueError, OverflowError):
        return -1
    return ns if abs(ns) < 2**62 else -1
