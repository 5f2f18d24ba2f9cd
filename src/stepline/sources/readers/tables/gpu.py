"""GPU counters in tables: nvidia-smi, NVML, DCGM, as they write them and as people name them."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from stepline.evidence.gpu import GpuSample
from stepline.evidence.origin import Origin
from stepline.sources.quantities.cells import cell
from stepline.sources.quantities.quantity import Quantity
from stepline.sources.quantities.split import split
from stepline.sources.readers.tables.roles import Column, Roles, Row

SHARES = ("graphics_busy", "sm_busy", "sm_occupancy", "tensor_busy", "fp32_busy", "dram_busy")
FIELDS = {
    "sm_clock": "sm_clock_mhz",
    "memory_clock": "memory_clock_mhz",
    "power": "power_w",
    "temperature": "temperature_c",
}
_PREFERRED = ("mean", None, "p50", "low", "high", "max")
_STAMPS = ("%Y/%m/%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S", "%Y-%m-%d %H:%M:%S")


def counters(roles: Roles) -> list[Column]:
    """The columns that count what a GPU does."""
    return [c for c in roles.others if c.quantity.what in (*SHARES, *FIELDS, "throttle_reasons")]


def samples_of(
    rows: Sequence[Row], origins: Sequence[Origin], roles: Roles, *, decimal_comma: bool = False
) -> list[GpuSample]:
    """One sample a row that has any counter."""
    columns = counters(roles)
    found = []
    for written, origin in zip(rows, origins, strict=True):
        row = _with_points(written) if decimal_comma else written
        fields = _fields(row, columns)
        if fields:
            found.append(GpuSample(origin=origin, time_s=_time(row, roles), gpu=_gpu(row), **fields))
    return found


def _with_points(row: Row) -> dict[str, Any]:
    """A row of a table whose commas are decimal signs."""
    return {name: value.replace(",", ".") if isinstance(value, str) else value for name, value in row.items()}


def _fields(row: Row, columns: Sequence[Column]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    ends: dict[str, list[float]] = {}
    for column in sorted(columns, key=_order):
        quantity, raw = column.quantity, row.get(column.name)
        what = quantity.what or ""
        if what == "throttle_reasons":
            if (mask := _mask(raw)) is not None:
                fields.setdefault("clock_event_reasons", mask)
            continue
        value = cell(raw)
        if value is None or (quantity.statistic == "max" and what != "temperature"):
            continue
        name = FIELDS.get(what, what)
        number = value.value / _whole(quantity) if what in SHARES else value.value
        number = number / 1000 if quantity.unit == "mw" else number
        if quantity.statistic in ("low", "high"):
            ends.setdefault(name, []).append(number)
        elif quantity.statistic in _PREFERRED:
            fields.setdefault(name, number)
    for name, pair in ends.items():
        fields.setdefault(name, sum(pair) / len(pair))
    return fields


def _order(column: Column) -> tuple[int, str]:
    statistic = column.quantity.statistic
    return _PREFERRED.index(statistic) if statistic in _PREFERRED else 9, column.name


def _whole(quantity: Quantity) -> float:
    """What stands for all of the time: DCGM's profiling fields are shares of 1, NVML and nvidia-smi write percent."""
    words = split(quantity.name)
    return 1.0 if quantity.unit == "share" or ("prof" in words and quantity.unit is None) else 100.0


def _mask(raw: Any) -> int | None:
    text = str(raw).strip()
    if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", text):
        return int(text, 16)
    value = cell(raw)
    return None if value is None or value.value < 0 else int(value.value)


def _gpu(row: Row) -> int:
    for name in sorted(row):
        if split(name) in (("gpu",), ("gpu", "index"), ("index",), ("gpu", "id")):
            value = cell(row[name])
            if value is not None and value.value >= 0 and value.value.is_integer():
                return int(value.value)
    return 0


def _time(row: Row, roles: Roles) -> float | None:
    for column in roles.others:
        if column.quantity.what != "time":
            continue
        raw = row.get(column.name)
        value = cell(raw)
        if value is not None:
            return value.value
        for stamp in _STAMPS:
            try:
                return datetime.strptime(str(raw).strip(), stamp).replace(tzinfo=UTC).timestamp()
            except ValueError:
                continue
    return None
