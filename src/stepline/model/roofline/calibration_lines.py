"""What a calibration says an operation takes: lines through its measurements, between its batches.

Every operation that moves data is described as `start + bytes / rate` at each batch that was measured; the start is
what a kernel costs beside its bytes (launch in the graph, ramp, tail), the rate what it reaches in full flight.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from stepline.evidence.calibration import ENGINE_ATTENTION, STACK_PARTS, Calibration, Group, Measured

SMALL_KERNELS = ("norm", "add", "silu", "cache write")
"""The kernels beside products and attention; one stands for another, as all of them are mostly start."""
TYPES = ("bf16", "fp8")
ARGMAX = "argmax over the vocabulary"


class Line(NamedTuple):
    """Milliseconds of an operation by the bytes it moves."""

    start_ms: float
    ms_per_byte: float

    def at(self, size_bytes: float) -> float:
        """Milliseconds for `size_bytes`."""
        return self.start_ms + self.ms_per_byte * size_bytes


class Rates:
    """A calibration as functions of batch and bytes; ask only for what `missing` and `streams` say is there."""

    def __init__(self, calibration: Calibration) -> None:
        streams = [_weight(each) for each in _sized(calibration, "stream", "rows", "n", "k")]
        peaks, kernels = _sized(calibration, "peak"), _sized(calibration, "kernel", "rows")
        reduced = _sized(calibration, "allreduce", "gpus")
        self._products = {
            dtype: _lines([each for each in streams if each.dtype == dtype], "rows") for dtype in TYPES
        }
        self._peaks = {
            dtype: max((each.flops_s for each in peaks if each.dtype == dtype), default=0.0)
            for dtype in TYPES
        }
        attention = _sized(calibration, "attention", "rows")
        self._attention = _lines([each for each in attention if each.name == ENGINE_ATTENTION], "rows")
        self._small = _by_rows([each for each in kernels if each.name in SMALL_KERNELS])
        self._argmax = _by_rows([each for each in kernels if each.name == ARGMAX])
        self._all_reduce = _lines(reduced, "gpus")
        self._following = _following(calibration)

    @property
    def missing(self) -> tuple[str, ...]:
        """What every step needs and was not measured."""
        needed = {
            "attention": self._attention,
            "small kernels": self._small,
            "argmax": self._argmax,
            "layers": self._following,
        }
        return tuple(name for name, found in needed.items() if not found)

    def streams(self, dtype: str | None) -> bool:
        """Whether products of small batches were measured in this type."""
        return bool(dtype and self._products.get(dtype))

    def product_ms(self, dtype: str, rows: float, weight_bytes: float, flops: float) -> float:
        """A weight of `weight_bytes` on one GPU, multiplied with `rows` rows."""
        lines = self._products[dtype]
        streamed = _between({n: line.at(weight_bytes) for n, line in lines.items()}, rows)
        peak = self._peaks[dtype]
        return max(streamed, flops / peak * 1e3) if peak else streamed

    def attention_ms(self, rows: float, cache_bytes: float) -> float:
        """Decode attention of one layer for `rows` sequences whose caches hold `cache_bytes` on one GPU."""
        return _between({n: line.at(cache_bytes) for n, line in self._attention.items()}, rows)

    def small_ms(self, rows: float) -> float:
        """One small kernel over the activations of `rows` sequences."""
        return _between(self._small, rows)

    def argmax_ms(self, rows: float) -> float:
        """One pass over the logits of `rows` sequences, 128,256 each."""
        return _between(self._argmax, rows)

    def following_ms(self, rows: float) -> float:
        """What a kernel costs beyond its own time because it follows another kind of kernel."""
        return _between(self._following, rows)

    def all_reduce_ms(self, gpus: int, size_bytes: float) -> float | None:
        """One all-reduce over `gpus` GPUs; None where that many were not measured."""
        line = self._all_reduce.get(gpus)
        return None if line is None else line.at(size_bytes)

    @property
    def peak_bf16(self) -> float:
        """FLOP/s of a large product; 0 where it was not measured."""
        return self._peaks["bf16"]


def _sized(calibration: Calibration, group: Group, *keys: str) -> list[Measured]:
    """The measurements of a group that have these sizes: a file may be of any origin."""
    return [each for each in calibration.of(group) if set(keys) <= each.shape.keys() and each.ms > 0]


def _weight(each: Measured) -> Measured:
    """A product by the bytes of its weight alone: its activations follow from the batch, which has lines of its own."""
    width = 2 if each.dtype == "bf16" else 1
    return msgspec.structs.replace(each, bytes=each.shape["n"] * each.shape["k"] * width)


def _lines(points: Sequence[Measured], key: str) -> dict[float, Line]:
    """A line through the points of each value of `key` that has two sizes or more."""
    by_key: dict[float, list[tuple[float, float]]] = {}
    for each in points:
        by_key.setdefault(each.shape[key], []).append((each.bytes, each.ms))
    return {value: _line(pairs) for value, pairs in by_key.items() if len({size for size, _ in pairs}) > 1}


def _line(pairs: Sequence[tuple[float, float]]) -> Line:
    """Least squares of relative errors; a start below zero means none."""
    weights = [1 / (ms * ms) for _, ms in pairs]
    total = sum(weights)
    mean_bytes = sum(w * size for w, (size, _) in zip(weights, pairs, strict=True)) / total
    mean_ms = sum(w * ms for w, (_, ms) in zip(weights, pairs, strict=True)) / total
    spread = sum(w * (size - mean_bytes) ** 2 for w, (size, _) in zip(weights, pairs, strict=True))
    together = sum(
        w * (size - mean_bytes) * (ms - mean_ms) for w, (size, ms) in zip(weights, pairs, strict=True)
    )
    slope = max(together / spread, 0.0)
    start = mean_ms - slope * mean_bytes
    if start < 0:
        heavy = sum(w * size * size for w, (size, _) in zip(weights, pairs, strict=True))
        slope = sum(w * size * ms for w, (size, ms) in zip(weights, pairs, strict=True)) / heavy
        start = 0.0
    return Line(start, slope)


def _following(calibration: Calibration) -> dict[float, float]:
    """Milliseconds a kernel by rows: whole layers less the sum of their kernels timed alone, shared by all of them.

    Kernels of one kind in a row overlap their starts and ends; different ones that wait for each other do not.
    """
    found: dict[float, float] = {}
    for whole in _sized(calibration, "stack", "rows", "tokens", "layers"):
        parts = [_part(calibration, whole, *part) for part in STACK_PARTS]
        if None not in parts:
            alone_ms = sum(part for part in parts if part is not None)
            kernels = sum(count for *_, count in STACK_PARTS)
            found[whole.shape["rows"]] = max(whole.ms / whole.shape["layers"] - alone_ms, 0.0) / kernels
    return found


def _part(calibration: Calibration, whole: Measured, group: Group, name: str, count: int) -> float | None:
    """Milliseconds of `count` kernels of that name at the sizes of a stack; None where they were not measured."""
    sizes = {key: whole.shape[key] for key in ("rows", "tokens") if key == "rows" or group == "attention"}
    for each in calibration.of(group):
        if each.name == name and each.dtype in {"", whole.dtype} and sizes.items() <= each.shape.items():
            return count * each.ms
    return None


def _by_rows(points: Sequence[Measured]) -> dict[float, float]:
    """Mean milliseconds by rows."""
    by_rows: dict[float, list[float]] = {}
    for each in points:
        by_rows.setdefault(each.shape["rows"], []).append(each.ms)
    return {rows: sum(times) / len(times) for rows, times in by_rows.items()}


def _between(values: dict[float, float], at: float) -> float:
    """Interpolate between the nearest measured batches; outside them the nearest one holds."""
    known = sorted(values)
    low = max((value for value in known if value <= at), default=known[0])
    high = min((value for value in known if value >= at), default=known[-1])
    if low == high:
        return values[low]
    return values[low] + (values[high] - values[low]) * (at - low) / (high - low)
