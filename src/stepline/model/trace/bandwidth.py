"""Achieved bytes and FLOP a second, where a kernel's operator recorded its shapes or a copy its bytes."""

import math
from typing import Any

import msgspec
import numpy as np

from stepline.model.trace.work import Work

_BYTES = {
    "double": 8, "long int": 8, "long": 8, "float": 4, "int": 4, "c10::BFloat16": 2, "c10::Half": 2,
    "bool": 1,     "unsigned char": 1, "signed char": 1, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1,
    "c10::Float8_e4m3fnuz": 1, "c10::Float8_e5m2fnuz": 1,
}  # fmt: skip
_PRODUCTS = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1}
"""Matrix products and where their two factors start among the inputs."""
_ONCE = {"aten::copy_", "aten::mul", "aten::add", "aten::clamp_min_", "aten::relu", "aten::silu", "aten::cat"}
"""Operators that read each input once and write one output of the first input's size."""


def rates(work: Work, row: int, mean_ns: float) -> tuple[float | None, float | None]:
    """(bytes / s, FLOP / s) of a row's operator over its mean duration.

    None where the trace does not tell.
    """
    raw = work.raw
    if mean_ns <= 0:
        return None, None
    if raw.gpu.moved_bytes[row] > 0:
        return float(raw.gpu.moved_bytes[row]) / mean_ns * 1e9, None
    operators, at = raw.operators, work.operator[row]
    if at < 0 or operators.shapes[at] < 0 or operators.dtypes[at] < 0:
        return None, None
    shapes, dtypes = (_read(raw.strings[column[at]]) for column in (operators.shapes, operators.dtypes))
    name = raw.strings[operators.name[at]]
    if name in _PRODUCTS:
        if not _longest_of_its_operator(work, row):
            return None, None  # adds up the parts of a split product, or lays out an operand
        return _product(shapes[_PRODUCTS[name] :], dtypes[_PRODUCTS[name] :], mean_ns)
    if name in _ONCE and shapes and dtypes:
        sizes = [_size(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=False)]
        if sizes[0] and name != "aten::cat":
            moved = 2 * sizes[0] if name == "aten::copy_" else sum(s for s in sizes if s) + sizes[0]
            return moved / mean_ns * 1e9, None
    return None, None


def _longest_of_its_operator(work: Work, row: int) -> bool:
    gpu = work.raw.gpu
    mates = np.flatnonzero(gpu.operator == gpu.operator[row])
    return bool(row == mates[np.argmax((gpu.end_ns - gpu.start_ns)[mates])])


def _read(text: str) -> list[Any]:
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return []
    return found if isinstance(found, list) else []


def _size(shape: Any, dtype: object) -> float | None:
    width = _BYTES.get(str(dtype))
    whole = isinstance(shape, list) and shape and all(isinstance(n, int) for n in shape)
    return float(math.prod(shape)) * width if width and whole else None


def _product(shapes: list[Any], dtypes: list[Any], mean_ns: float) -> tuple[float | None, float | None]:
    if len(shapes) < 2 or len(dtypes) < 2:
        return None, None
    left, right = shapes[0], shapes[1]
    if not (isinstance(left, list) and isinstance(right, list) and len(left) == len(right) >= 2):
        return None, None
    out = [*left[:-1], right[-1]]
    flop = 2.0 * math.prod(out) * left[-1]
    sizes = [_size(left, dtypes[0]), _size(right, dtypes[1]), _size(out, dtypes[0])]
    moved = sum(size for size in sizes if size) if all(sizes) else None
    return (moved / mean_ns * 1e9 if moved else None), flop / mean_ns * 1e9
