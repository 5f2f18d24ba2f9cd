"""The roofline as places in an SVG: both axes logarithmic, the roof above, the pieces of the step below it."""

import math
from collections.abc import Iterable, Sequence

import msgspec

from stepline import units
from stepline.findings.detail import RooflinePoint, RooflineView
from stepline.report.charts import WIDTH, Tick
from stepline.report.scale import LogAxis, path, spread

HEIGHT = 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 24, 14, 34
_LINE_PX = 12.0
"""Height of a label: closer ones are moved apart."""


class Roof(msgspec.Struct, frozen=True):
    """The roof of one type of number, and its name at the right end."""

    path: str
    x: float
    y: float
    name: str


class RoofDot(msgspec.Struct, frozen=True):
    """A piece of the step, and the place on the roof right above it."""

    x: float
    y: float
    roof_y: float
    label_y: float | None
    """None for kernels: they are many, and the table names them."""
    name: str
    text: str
    kind: str


class RooflineChart(msgspec.Struct, frozen=True):
    """Roofs, dots, and the chart in a sentence."""

    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    roofs: tuple[Roof, ...]
    dots: tuple[RoofDot, ...]
    summary: str


def drawable(point: RooflinePoint) -> bool:
    """A piece without a product has no place on a chart of FLOP/s."""
    return min(point.bytes, point.flops, point.ms, point.floor_ms) > 0


def intensity(point: RooflinePoint) -> float:
    """FLOP a byte."""
    return point.flops / point.bytes


def achieved(point: RooflinePoint) -> float:
    """FLOP a second."""
    return point.flops / point.ms * 1e3


def roofline_chart(view: RooflineView) -> RooflineChart | None:
    """None where no piece multiplies anything, or the GPU has no known peak for it."""
    points = [point for point in view.points if drawable(point)]
    if not points or not view.peak_flop_s:
        return None
    bandwidth, highest = view.bandwidth_bytes_s, max(view.peak_flop_s.values())
    x = LogAxis(
        *_decades([*map(intensity, points), highest / bandwidth * 3]), at_low=_LEFT, at_high=WIDTH - _RIGHT
    )
    y = LogAxis(*_decades([*map(achieved, points), highest]), at_low=HEIGHT - _BOTTOM, at_high=_TOP)
    return RooflineChart(
        x_ticks=tuple(Tick(x.place(value), _short(value)) for value in x.decades()),
        y_ticks=tuple(Tick(y.place(value), _short(value)) for value in y.decades()),
        roofs=tuple(_roofs(view.peak_flop_s, bandwidth, x, y)),
        dots=tuple(_dots(points, x, y)),
        summary=f"Under the roof of {units.size(bandwidth)}/s: "
        + ", ".join(
            f"{point.name} at {units.times(point.ms / point.floor_ms)} its floor"
            for point in points
            if point.kind != "kernel"
        ),
    )


def _roofs(peaks: dict[str, float], bandwidth: float, x: LogAxis, y: LogAxis) -> Iterable[Roof]:
    start = max(x.low, y.low / bandwidth)
    labels = spread([y.place(peak) - 4 for peak in peaks.values()], _LINE_PX)
    for (name, peak), label_y in zip(peaks.items(), labels, strict=True):
        corners = [(start, bandwidth * start), (peak / bandwidth, peak), (x.high, peak)]
        line = path([(x.place(flop_per_byte), y.place(flop_s)) for flop_per_byte, flop_s in corners])
        yield Roof(path=line, x=x.at_high, y=label_y, name=name)


def _dots(points: Sequence[RooflinePoint], x: LogAxis, y: LogAxis) -> list[RoofDot]:
    places = [(x.place(intensity(point)), y.place(achieved(point))) for point in points]
    named = [index for index, point in enumerate(points) if point.kind != "kernel"]
    labels = dict(zip(named, spread([places[index][1] for index in named], _LINE_PX), strict=True))
    return [
        RoofDot(
            x=at_x,
            y=at_y,
            roof_y=y.place(achieved(point) * point.ms / point.floor_ms),
            label_y=None if index not in labels else round(labels[index] + 4, 1),
            name=point.name,
            text=f"{point.name}: {units.ms(point.ms)}, floor {units.ms(point.floor_ms)}",
            kind=point.kind,
        )
        for index, (point, (at_x, at_y)) in enumerate(zip(points, places, strict=True))
    ]


def _decades(values: Sequence[float]) -> tuple[float, float]:
    """The powers of ten around all values."""
    return 10.0 ** math.floor(math.log10(min(values))), 10.0 ** math.ceil(math.log10(max(values)))


def _short(value: float) -> str:
    for unit, scale in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:g} {unit}"
    return f"{value:g}"
