"""From values to places on a chart. Plain geometry."""

import math
from collections.abc import Iterable, Sequence

import msgspec

Point = tuple[float, float]


class Axis(msgspec.Struct, frozen=True):
    """Values from 0 to `top`, drawn from pixel `at_zero` to pixel `at_top`."""

    top: float
    at_zero: float
    at_top: float

    def place(self, value: float) -> float:
        """The pixel of a value, to a tenth."""
        return round(self.at_zero + (self.at_top - self.at_zero) * value / self.top, 1)


def ticks(largest: float, about: int = 4) -> tuple[float, ...]:
    """Round numbers from 0 to at least `largest`, `about` of them; the last one is the axis's top."""
    if not (math.isfinite(largest) and largest > 0):
        return (0.0, 1.0)
    rough = largest / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    return tuple(step * count for count in range(math.ceil(largest / step - 1e-9) + 1))


def path(points: Iterable[Point]) -> str:
    """An SVG path through points."""
    return "M" + " L".join(f"{x:g} {y:g}" for x, y in points)


def runs(values: Sequence[float | None], bridge: int) -> list[list[tuple[int, float]]]:
    """Stretches of known values; up to `bridge` unknown ones in a row do not break a stretch."""
    stretches: list[list[tuple[int, float]]] = []
    for index, value in enumerate(values):
        if value is None:
            continue
        if stretches and index - stretches[-1][-1][0] <= bridge + 1:
            stretches[-1].append((index, value))
        else:
            stretches.append([(index, value)])
    return stretches


class LogAxis(msgspec.Struct, frozen=True):
    """Values from `low` to `high`, both powers of ten, each decade as long as the next."""

    low: float
    high: float
    at_low: float
    at_high: float

    def place(self, value: float) -> float:
        """The pixel of a value, to a tenth."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.at_low + (self.at_high - self.at_low) * share, 1)

    def decades(self, most: int = 8) -> tuple[float, ...]:
        """Powers of ten from `low` to `high`, every second or third one where they are more than `most`."""
        first, last = round(math.log10(self.low)), round(math.log10(self.high))
        return tuple(10.0**power for power in range(first, last + 1, math.ceil((last - first + 1) / most)))


def spread(places: Sequence[float], apart: float) -> list[float]:
    """The same places, in the same order, moved down just so far that no two are closer than `apart`."""
    moved, last = list(places), -math.inf
    for index in sorted(range(len(places)), key=places.__getitem__):
        moved[index] = last = max(places[index], last + apart)
    return moved
