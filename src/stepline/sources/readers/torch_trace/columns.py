"""Decoded events, piece by piece, into the columns of a RawTrace."""

import re
from collections import defaultdict
from decimal import Decimal, InvalidOperation
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.evidence.trace_arrays import COPY, FILL, KERNEL, Calls, Column, GpuWork, Operators, Spans
from stepline.sources.readers.torch_trace.arguments import Triples
from stepline.sources.readers.torch_trace.events import AnySpan

LONGEST_NS = 600 * 10**9
"""No single kernel, copy or call of a served model takes ten minutes; unset ends overflow far beyond it."""

SORTS = {
    "kernel": KERNEL, "gpu_memcpy": COPY, "memcpy": COPY, "gpu_memset": FILL, "memset": FILL,
    "concurrent_kernel": KERNEL, "mtia_kernel": KERNEL,
}  # fmt: skip
TEXT_THREADS = -(1 << 40)
"""A thread known only by a text, such as "stream 7", is this number less the text's index."""
CALLS = ("cuda_runtime", "cuda_driver", "runtime", "hip_runtime", "mtia_runtime", "privateuse1_runtime")
OPERATORS = ("cpu_op", "operator")


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
    """Collects the kept events of one file."""

    def __init__(self) -> None:
        self.strings = Strings()
        self.odd_times = 0
        self._texts = _RawTexts(self.strings)
        self._triples = Triples()
        self._rows: dict[str, list[tuple[Column, ...]]] = {}

    def add(self, events: list[Any]) -> None:
        """Sort the spans of one decoded piece into their columns."""
        groups: defaultdict[str | None, list[AnySpan]] = defaultdict(list)
        for event in events:
            groups[event.cat].append(event)
        groups.pop(None, None)  # flows, instants, metadata
        for written, group in groups.items():
            cat = (written or "").lower()
            if cat in SORTS:
                self._gpu(group, SORTS[cat])
            elif cat in CALLS:
                self._keep("calls", group, _ints(group, "args.correlation"), thread=True)
            elif cat in OPERATORS:
                self._operators(group)
            elif cat == "python_function":
                self._keep("frames", group, thread=True)
            elif cat == "user_annotation":
                self._keep("marks", group, thread=True)
            elif cat == "overhead":
                self._keep("overheads", group, thread=True)

    def _gpu(self, group: list[AnySpan], sort: int) -> None:
        operator = _ints(group, "args.external")  # the external id, however it is spelled
        operator = np.where(operator >= 0, operator, _ints(group, "args.external_2021"))
        self._keep(
            "gpu",
            group,
            np.full(len(group), sort, np.int64),
            _ints(group, "args.device"),
            _ints(group, "args.stream"),
            _ints(group, "args.correlation"),
            operator,
            _ints(group, "args.registers"),
            _ints(group, "args.shared_bytes"),
            self._indices(self._triples, group, "args.grid"),
            self._indices(self._triples, group, "args.block"),
            _ints(group, "args.moved_bytes"),
            _ints(group, "args.graph_node"),
            self._indices(self._texts, group, "args.collective"),
        )

    def _operators(self, group: list[AnySpan]) -> None:
        external = _ints(group, "args.external")
        self._keep(
            "operators",
            group,
            np.where(external >= 0, external, _ints(group, "args.external_2021")),
            self._indices(self._texts, group, "args.shapes"),
            self._indices(self._texts, group, "args.dtypes"),
            thread=True,
        )

    @staticmethod
    def _indices(known: dict[bytes, int], group: list[AnySpan], field: str) -> Column:
        """Indices of undecoded JSON; decoding is left to the distinct ones, or the few that are shown."""
        return np.fromiter(map(known.__getitem__, map(bytes, map(attrgetter(field), group))), np.int64)

    def _keep(self, into: str, group: list[AnySpan], *columns: Column, thread: bool = False) -> None:
        """Append name, start and end, the thread where asked for, and the given columns of a group."""
        start, length = (_times_ns(list(map(attrgetter(field), group))) for field in ("ts", "dur"))
        names = map(self.strings.__getitem__, map(attrgetter("name"), group))
        row = [np.fromiter(names, np.int64, len(group)), start, start + length]
        row += [*([self._threads(group)] if thread else []), *columns]
        good = (start > 0) & (length >= 0) & (length < LONGEST_NS)
        if not good.all():
            self.odd_times += int((~good).sum())
            row = [column[good] for column in row]
        self._rows.setdefault(into, []).append(tuple(row))

    def _threads(self, group: list[AnySpan]) -> Column:
        """Thread ids as numbers; a name such as "stream 7" or "" is numbered by its text."""
        ids: list[Any] = list(map(attrgetter("tid"), group))
        if str in set(map(type, ids)):
            ids = [self._thread(tid) if type(tid) is str else tid for tid in ids]
        return np.fromiter(ids, np.int64, len(ids))

    def _thread(self, text: str) -> int:
        return int(text) if text.lstrip("-").isdigit() else TEXT_THREADS - self.strings[text]

    def _joined(self, into: str, count: int) -> list[Column]:
        """Columns of one kind, joined and ordered by start (name, start, end, then the rest)."""
        rows = self._rows.pop(into, [])
        if not rows:
            return [np.zeros(0, np.int64) for _ in range(count)]
        columns = list(zip(*rows, strict=True))
        rows.clear()
        order = np.argsort(np.concatenate(columns[1]), kind="stable")
        joined = []
        while columns:  # each freed before the next is joined, so that not all are held twice
            joined.append(np.concatenate(columns.pop(0))[order])
        return joined

    def gpu(self) -> GpuWork:
        """Kernels, copies and fills."""
        c = self._joined("gpu", 15)
        triples = np.array(self._triples.known, np.int64)
        return GpuWork(
            name=c[0], start_ns=c[1], end_ns=c[2], sort=c[3], device=c[4], stream=c[5], correlation=c[6],
            operator=c[7], registers=c[8], shared_bytes=c[9], grid=triples[c[10]], block=triples[c[11]],
            moved_bytes=c[12], graph_node=c[13], collective=c[14],
        )  # fmt: skip

    def calls(self) -> Calls:
        """Runtime and driver calls."""
        c = self._joined("calls", 5)
        return Calls(name=c[0], start_ns=c[1], end_ns=c[2], thread=c[3], correlation=c[4])

    def operators(self) -> Operators:
        """Framework operators."""
        c = self._joined("operators", 7)
        return Operators(
            name=c[0], start_ns=c[1], end_ns=c[2], thread=c[3], external=c[4], shapes=c[5], dtypes=c[6]
        )

    def spans(self, into: str) -> Spans:
        """`frames`, `marks` or `overheads`."""
        c = self._joined(into, 4)
        return Spans(name=c[0], start_ns=c[1], end_ns=c[2], thread=c[3])


def _ints(group: list[AnySpan], field: str) -> Column:
    return np.fromiter(map(attrgetter(field), group), np.int64, len(group))


def _times_ns(times: list[Any]) -> NDArray[np.int64]:
    """Microseconds to integer nanoseconds, exactly: from floats below 2**43 µs or whole, else from text."""
    if times and not isinstance(times[0], float):
        return np.array([_text_ns(bytes(raw)) for raw in times], np.int64)
    values = np.array(times, np.float64)
    values[~(np.abs(values) < 9e15)] = -1.0
    whole = np.floor(values)
    return whole.astype(np.int64) * 1000 + np.rint((values - whole) * 1000).astype(np.int64)


def _text_ns(raw: bytes) -> int:
    try:
        ns = int((Decimal(raw.strip(b'"').decode()) * 1000).to_integral_value())
    except (InvalidOperation, ValueError, OverflowError):
        return -1
    return ns if abs(ns) < 2**62 else -1


_FRACTION = re.compile(rb'"ts"\s*:\s*"?\d{13,}\.\d*[1-9]')


def large_times(events: list[Any]) -> bool:
    """Whether times reach 2**43 µs, where a float64 no longer tells nanoseconds apart."""
    sample = events[:: max(1, len(events) // 1000)]  # one file writes all its times alike
    return any(abs(e.ts) >= 2.0**43 for e in sample if e.cat is not None)


def fractional(body: bytes) -> bool:
    """Whether large times are written with a fraction of a microsecond."""
    return bool(_FRACTION.search(body))
