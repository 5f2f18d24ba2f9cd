"""Numbers as people read them. Formatting only: nothing here decides anything."""

import math


def fmt(value: float, digits: int = 3) -> str:
    """Round to `digits` significant digits without exponent or trailing noise: 1444.2 is '1,444'."""
    if not math.isfinite(value):
        return "?"
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def ms(value_ms: float) -> str:
    """Milliseconds, in seconds from 1,000 ms and in microseconds below 0.1 ms."""
    if abs(value_ms) >= 1000:
        return f"{fmt(value_ms / 1000)} s"
    if 0 < abs(value_ms) < 0.1:
        return f"{fmt(value_ms * 1000)} µs"
    return f"{fmt(value_ms)} ms"


def tok_s(value: float) -> str:
    """Tokens a second, whole from 100 on."""
    return f"{value:,.0f} tok/s" if abs(value) >= 100 else f"{fmt(value)} tok/s"


def percent(share: float) -> str:
    """A share of 1 as a percentage: whole from 10 on, else two digits."""
    value = share * 100
    return f"{value:.0f} %" if abs(value) >= 10 else f"{fmt(value, 2)} %"


def times(ratio: float) -> str:
    """A ratio such as '4.5×'."""
    return f"{fmt(ratio, 2 if ratio < 10 else 3)}×"


def count(value: float) -> str:
    """A whole number with thousands separators."""
    return f"{value:,.0f}"


def batch(running: float) -> str:
    """A running batch: whole where it is whole, a mean to one decimal."""
    return f"{running:,.1f}".removesuffix(".0")


def size(value_bytes: float) -> str:
    """Bytes in decimal units (GB = 1e9 B), as memory bandwidth is counted."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(value_bytes) >= scale:
            return f"{fmt(value_bytes / scale)} {unit}"
    return f"{value_bytes:.0f} B"


def change(ratio: float) -> str:
    """A ratio of speeds as people say it: '+1.2 %' near one, '4.3×' from a quarter on."""
    return f"{100 * (ratio - 1):+.1f} %" if 0.8 < ratio < 1.25 else times(ratio)
