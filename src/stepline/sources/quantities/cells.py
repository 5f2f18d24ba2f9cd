"""A cell of a table as a number: `~14`, `71 ms`, `1,204.5`, `92.4 %`, `8K`, `14-16`, `27,5`, `3.2 ± 0.1`."""

import math
import re
from typing import Any, NamedTuple

from stepline.sources.quantities.words import vocabulary

_NUMBER = r"[-+]?(?:\d[\d, ']*\d|\d)(?:[.]\d+)?(?:[eE][-+]?\d+)?|[-+]?\.\d+"
_RANGE = re.compile(
    rf"^(?P<low>{_NUMBER})\s*(?P<scale1>[kKmM]?)\s*(?:-|–|—|to|\.\.+|…|~)\s*(?P<high>{_NUMBER})\s*(?P<rest>.*)$"
)
_ONE = re.compile(rf"^(?P<low>{_NUMBER})\s*(?:(?:±|\+/-|\+-)\s*(?P<spread>{_NUMBER}))?\s*(?P<rest>.*)$")
_ABOUT = re.compile(r"^(?:~|≈|≅|about|approx\.?|ca\.?|c\.|around)\s*", re.IGNORECASE)
_BOUND = re.compile(r"^(?:[<>≤≥]=?)\s*")
_MARKUP = re.compile(r"<[^<>]{1,40}>|[*`_]{1,3}|\[\^?\d+\]|†|‡")
_AFTER = re.compile(r"^\(.*\)$|^[*†‡]+$")
_PLAIN = re.compile(r"\d{1,15}(?:\.\d{1,15})?")
"""Most cells of long tables, read at once."""
MAX_CELL = 80


class Value(NamedTuple):
    """A number with the interval that was written for it and the unit beside it."""

    value: float
    low: float
    high: float
    unit: str | None = None
    """ns, us, ms, s, min, h, percent or another unit of the vocabulary."""
    about: bool = False
    """True for a rounded or a bounded value."""
    scale: float = 1.0
    """1 or what `k`, `M` behind the number stand for by 1000; lengths in tokens are counted by 1024."""


def cell(raw: Any, *, decimal_comma: bool = False) -> Value | None:
    """What a cell says; None for an empty one, a word, or anything that is not one number or one range."""
    if raw is None or isinstance(raw, bool):
        return None
    if isinstance(raw, int | float):
        try:
            number = float(raw)
        except OverflowError:
            return None
        return Value(number, number, number) if math.isfinite(number) else None
    if not isinstance(raw, str):
        return None
    if _PLAIN.fullmatch(raw):
        number = float(raw)
        return Value(number, number, number)
    text = _MARKUP.sub("", raw[: 4 * MAX_CELL]).replace("\N{NO-BREAK SPACE}", " ").replace("−", "-").strip()
    if len(text) > MAX_CELL:
        return None
    about = bool(_ABOUT.match(text) or _BOUND.match(text))
    text = _BOUND.sub("", _ABOUT.sub("", text))
    if decimal_comma:
        text = re.sub(r"(?<=\d)\.(?=\d{3}\b)", "", text)
        text = re.sub(r"(?<=\d),(?=\d)", ".", text)
    found = _RANGE.match(text) or _ONE.match(text)
    if found is None:
        return None
    parts = found.groupdict()
    rest = _rest(parts["rest"])
    low = _float(parts["low"])
    if rest is None or low is None:
        return None
    unit, scale = rest
    if "high" in parts:
        high = _float(parts["high"])
        if high is None or high < low:
            return None
        low, high = low * scale, high * scale
        return _value((low + high) / 2, low, high, unit, about=True, scale=scale)
    spread = _float(parts["spread"]) if parts["spread"] else 0.0
    spread = (spread or 0.0) * scale
    return _value(low * scale, low * scale - spread, low * scale + spread, unit, about=about, scale=scale)


def _value(
    value: float, low: float, high: float, unit: str | None, *, about: bool, scale: float
) -> Value | None:
    if not all(map(math.isfinite, (value, low, high))):
        return None
    return Value(value, low, high, unit, about, scale)


def _float(text: str) -> float | None:
    """A number with thousands separators; None where what stands between digits separates no thousands."""
    plain = text.replace("'", ",").replace(" ", ",")
    if "," in plain and not re.fullmatch(r"[-+]?\d{1,3}(,\d{2,3})*,\d{3}(\.\d+)?([eE][-+]?\d+)?", plain):
        return None
    try:
        return float(plain.replace(",", ""))
    except ValueError:
        return None


def _rest(text: str) -> tuple[str | None, float] | None:
    """(unit, scale) of what stands behind a number; None where it is something else."""
    text = text.strip()
    if not text or _AFTER.match(text):
        return None, 1.0
    if text in ("k", "K"):
        return None, 1e3
    if text in ("m", "M"):
        return None, 1e6
    if text in ("x", "×"):
        return "times", 1.0
    word = text.lower().rstrip(".")
    word = {"%": "percent", "µs": "us", "μs": "us", "°c": "celsius"}.get(word, word)
    meaning = vocabulary().get((word,), {}).get("unit")
    if meaning is not None:
        return meaning, 1.0
    # The unit of a rate or a count, which the column tells too: `28 tok/s`, `40.2 t/s/u`, `8 reqs`.
    if re.fullmatch(r"(?:[kK]\s*)?[a-z]{1,12}(?:\s*/\s*[a-z]{1,8}){0,2}", word):
        return word, 1e3 if word.startswith("k ") else 1.0
    return None


def decimal_commas(cells: list[str]) -> bool:
    """True where the commas of a table without comma as delimiter can only be decimal signs.

    One cell whose comma separates no thousands decides, unless a point is used as decimal sign too.
    """
    if not any("," in text for text in cells):
        return False
    numbers = [
        text.strip() for text in cells if re.fullmatch(r"[~≈<>]?\s*[-+]?[\d.,]+\s*\D{0,10}", text.strip())
    ]
    commas = [text for text in numbers if "," in text]
    odd = [text for text in commas if re.search(r"\d,(?!\d{3}(?!\d))\d", text)]
    points = [
        text for text in numbers if re.search(r"\d\.\d", text) and not re.search(r"\d\.\d{3}(?!\d)", text)
    ]
    return bool(odd) and not points
