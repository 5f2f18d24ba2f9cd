"""The step law and the timeline as places in an SVG 360 units wide: what a phone shows, so its text stays readable."""

import msgspec

from stepline import units
from stepline.findings.detail import Series, Timeline
from stepline.findings.diagnosis import StepView
from stepline.report.scale import Axis, path, runs, ticks

WIDTH, LAW_HEIGHT, SERIES_HEIGHT = 360, 190, 120
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 12, 34
BRIDGED = 3
"""Empty bins that a line crosses: decode lines come every few seconds, an idle server prints none."""


class Tick(msgspec.Struct, frozen=True):
    """A number on an axis and its pixel."""

    at: float
    text: str


class Dot(msgspec.Struct, frozen=True):
    """A measured point."""

    x: float
    y: float
    text: str


class LawChart(msgspec.Struct, frozen=True):
    """The law: measured points, fitted line, 95 % band, floor."""

    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    dots: tuple[Dot, ...]
    line: str | None
    band: str | None
    floor: str | None
    summary: str


class SeriesLine(msgspec.Struct, frozen=True):
    """One quantity: paths of its stretches and dots of lone values."""

    name: str
    paths: tuple[str, ...]
    dots: tuple[tuple[float, float], ...]
    lowest: str
    highest: str


class SeriesChart(msgspec.Struct, frozen=True):
    """Quantities of one unit from one source."""

    title: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[SeriesLine, ...]
    shades: tuple[tuple[float, float], ...]
    """(x, width) of what happened meanwhile."""
    summary: str


def law_chart(step: StepView) -> LawChart | None:
    """The law of a step; None without a point."""
    law = step.law
    if not law.points:
        return None
    heights = [point.step_ms for point in law.points]
    heights += [
        value for point in law.curve for value in (point.step_ms, point.floor_ms) if value is not None
    ]
    reach = 1.5 * max(heights)  # a wide interval is cut off rather than flattening the points
    tops = ticks(max(heights + [min(reach, p.interval.high) for p in law.curve if p.interval is not None]))
    batches = ticks(max(point.running for point in law.points))
    x = Axis(batches[-1], _LEFT, WIDTH - _RIGHT)
    y = Axis(tops[-1], LAW_HEIGHT - _BOTTOM, _TOP)
    fitted = [(x.place(p.running), y.place(p.step_ms)) for p in law.curve if p.step_ms is not None]
    banded = [(p.running, p.interval) for p in law.curve if p.interval is not None]
    upper = [(x.place(n), y.place(min(span.high, y.top))) for n, span in banded]
    lower = [(x.place(n), y.place(min(span.low, y.top))) for n, span in banded]
    floor = [(x.place(p.running), y.place(p.floor_ms)) for p in law.curve if p.floor_ms is not None]
    return LawChart(
        x_ticks=tuple(Tick(x.place(n), f"{n:g}") for n in batches),
        y_ticks=tuple(Tick(y.place(value), f"{value:g}") for value in tops),
        dots=tuple(
            Dot(
                x.place(p.running),
                y.place(p.step_ms),
                f"{units.batch(p.running)} running: {units.ms(p.step_ms)}",
            )
            for p in law.points
        ),
        line=path(fitted) if fitted else None,
        band=path([*upper, *reversed(lower)]) + "Z" if banded else None,
        floor=path(floor) if floor else None,
        summary="Step time over the running batch: "
        + ", ".join(f"{units.ms(p.step_ms)} at {units.batch(p.running)}" for p in law.points[:12]),
    )


def series_charts(timeline: Timeline) -> tuple[SeriesChart, ...]:
    """One chart for each unit and source."""
    groups: dict[tuple[str, str], list[Series]] = {}
    for series in timeline.series:
        groups.setdefault((series.unit, series.source), []).append(series)
    return tuple(_chart(timeline, group) for group in groups.values())


def _chart(timeline: Timeline, group: list[Series]) -> SeriesChart:
    share = group[0].unit == "share"
    known = [value for series in group for value in series.values if value is not None]
    tops = (0.0, 0.5, 1.0) if share and max(known) <= 1 else ticks(max(known), 3)
    bins = max(len(series.values) for series in group)
    seconds = ticks(max(1.0, (bins - 1) * timeline.bin_s))
    x = Axis(seconds[-1], _LEFT, WIDTH - _RIGHT)
    y = Axis(tops[-1], SERIES_HEIGHT - _BOTTOM, _TOP)
    drawn = tuple(_line(series, timeline.bin_s, x, y, share=share) for series in group)
    ranges = "; ".join(f"{line.name} from {line.lowest} to {line.highest}" for line in drawn)
    return SeriesChart(
        title=f"{', '.join(series.name for series in group)} ({group[0].unit})",
        x_ticks=tuple(Tick(x.place(value), _clock(value, seconds[-1])) for value in seconds),
        y_ticks=tuple(Tick(y.place(value), _shown(value, share=share)) for value in tops),
        lines=drawn,
        shades=tuple(
            (x.place(mark.start_s), max(1.0, round(x.place(mark.end_s) - x.place(mark.start_s), 1)))
            for mark in timeline.marks
            if 0 <= mark.start_s <= mark.end_s <= x.top
        ),
        summary=f"Over {_clock(seconds[-1], seconds[-1])} from {timeline.starts}: {ranges}.",
    )


def _line(series: Series, bin_s: float, x: Axis, y: Axis, *, share: bool) -> SeriesLine:
    stretches = [
        [(x.place(index * bin_s), y.place(value)) for index, value in stretch]
        for stretch in runs(series.values, BRIDGED)
    ]
    known = [value for value in series.values if value is not None]
    return SeriesLine(
        name=series.name,
        paths=tuple(path(stretch) for stretch in stretches if len(stretch) > 1),
        dots=tuple(stretch[0] for stretch in stretches if len(stretch) == 1),
        lowest=_shown(min(known), share=share),
        highest=_shown(max(known), share=share),
    )


def _shown(value: float, *, share: bool) -> str:
    return units.percent(value) if share else f"{value:,.4g}"


def _clock(seconds: float, longest: float) -> str:
    return f"{seconds:g} s" if longest < 600 else f"{seconds / 60:.3g} min"
