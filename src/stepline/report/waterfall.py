"""The decode step as a waterfall: each part starts where the last one ended, the floor beside them."""

from typing import Literal

import msgspec

from stepline import units
from stepline.findings.diagnosis import AccountingLine, RunDiagnosis

SMALL = 0.01
"""Share of the step below which parts share one bar: thinner ones cannot be seen on a phone."""
_GAPS = ("host gap", "not explained by the floor", "unattributed")

Kind = Literal["floor", "part", "gap", "total"]


class Bar(msgspec.Struct, frozen=True):
    """One row; `left` and `width` are percentages of the chart's width."""

    label: str
    ms: float
    text: str
    kind: Kind
    left: float
    width: float
    least: float | None = None
    """Width of the part's own floor inside the bar."""


class Waterfall(msgspec.Struct, frozen=True):
    """The chart, and its one-sentence alternative."""

    title: str
    summary: str
    bars: tuple[Bar, ...]
    floor_at: float | None
    """Where the floor ends, as a percentage."""


def waterfall(diagnosis: RunDiagnosis) -> Waterfall | None:
    """The accounted step; the bare measured one where there is no accounting; None without a step."""
    at = diagnosis.accounted
    if at is None:
        step = diagnosis.step
        if step is None:
            return None
        running, wall_ms, floor_ms = step.running, step.measured_ms, None
    else:
        running, wall_ms, floor_ms = at.running, at.wall_ms, at.floor_ms
    rows = _rows(diagnosis.accounting, wall_ms)
    measured = any(
        line.measured_ms is not None and line.component not in _GAPS for line in diagnosis.accounting
    )
    if floor_ms is not None and measured:
        rows.insert(0, ("floor", floor_ms, "floor"))
    rows.append(("step", wall_ms, "total"))
    scale = max(wall_ms, sum(ms for _, ms, kind in rows if kind in ("part", "gap") and ms > 0), floor_ms or 0)
    told = "" if floor_ms is None else f", its floor {units.ms(floor_ms)}"
    return Waterfall(
        title=f"Where the {units.ms(wall_ms)} of a decode step at {units.batch(running)} running go",
        summary=f"The step takes {units.ms(wall_ms)}{told}{_elsewhere(diagnosis, running)}.{_below_zero(rows)}",
        bars=tuple(_bars(rows, scale, _floors(diagnosis), stacked_floor=not measured)),
        floor_at=None if floor_ms is None else round(100 * floor_ms / scale, 2),
    )


def _elsewhere(diagnosis: RunDiagnosis, running: float) -> str:
    """A warning where the trace was taken at another batch than the load's."""
    step = diagnosis.step
    if step is None or step.running == running:
        return ""
    return f"; the load runs {units.batch(step.running)}, where it takes {units.ms(step.measured_ms)}"


def _below_zero(rows: "list[Row]") -> str:
    """What a gap below zero means."""
    if all(ms >= 0 for _, ms, kind in rows if kind == "gap"):
        return ""
    return " Below zero: under the profiler the GPU worked a little longer than the step takes without it."


def _floors(diagnosis: RunDiagnosis) -> dict[str, float]:
    """Floors of the parts that were measured."""
    return {
        line.component: line.floor_ms
        for line in diagnosis.accounting
        if line.measured_ms is not None and line.floor_ms is not None
    }


Row = tuple[str, float, Kind]


def _rows(accounting: tuple[AccountingLine, ...], wall_ms: float) -> list[Row]:
    rows: list[Row] = []
    small: list[float] = []
    for line in accounting:
        ms = line.floor_ms if line.measured_ms is None else line.measured_ms
        if ms is None:
            continue
        kind: Kind = "gap" if line.component in _GAPS else "floor" if line.measured_ms is None else "part"
        if kind != "gap" and abs(ms) < SMALL * wall_ms:
            small.append(ms)
        else:
            rows.append((line.component, ms, kind))
    if small:
        before_gap = next((index for index, row in enumerate(rows) if row[2] == "gap"), len(rows))
        kind = "floor" if all(row[2] != "part" for row in rows) else "part"
        name = "1 smaller part" if len(small) == 1 else f"{len(small)} smaller parts"
        rows.insert(before_gap, (name, sum(small), kind))
    return rows


def _bars(rows: list[Row], scale: float, floors: dict[str, float], *, stacked_floor: bool) -> list[Bar]:
    bars, end = [], 0.0
    for label, ms, kind in rows:
        stands_alone = kind == "total" or (kind == "floor" and not stacked_floor)
        start = 0.0 if stands_alone else min(end, end + ms)
        if not stands_alone:
            end += ms
        left = 100 * max(0.0, start) / scale
        width = min(100 - left, 100 * abs(ms) / scale)
        least = None if label not in floors else round(100 * floors[label] / scale, 2)
        bars.append(Bar(label, ms, units.ms(ms), kind, round(left, 2), round(width, 2), least))
    return bars
