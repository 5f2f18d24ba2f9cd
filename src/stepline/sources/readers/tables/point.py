"""The numbers of one row in base units, each by what it measures and its statistic."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stepline.sources.quantities import checks
from stepline.sources.quantities.cells import Value, cell
from stepline.sources.quantities.quantity import Quantity, seconds_in
from stepline.sources.readers.tables.roles import Column, Roles, Row

SHARES = frozenset(("kv_usage", "cache_hit", "accept_rate"))
LENGTHS = frozenset(("context", "input_tokens", "output_tokens"))
RATES = frozenset(("token_rate", "request_rate", "offered_rate"))
LONGEST = 2**21
"""Tokens that no request has: twice the longest context that models are sold with."""
CENTRE = ("mean", "", "p50")
"""Statistics of what is usual, the one that products of means need first."""


class Units(NamedTuple):
    """What the names of a table leave open, settled for all of its rows."""

    time: str | None
    """Unit of times whose names have none; None where arithmetic does not tell."""
    wrong: str | None
    """The unit that times must be in though their names say another; None as a rule."""
    percent: frozenset[str]
    """Columns of shares that are written in percent."""
    decimal_comma: bool = False


Numbers = dict[tuple[str, str], float]
"""By (quantity, statistic), the statistic empty where the name says none: times in s, rates a second, shares of 1."""


def numbers(row: Row, columns: Sequence[Column], units: Units) -> Numbers:
    """Every number of a row that can be used; the first column by name where two say the same."""
    found: Numbers = {}
    ends: dict[str, dict[str, float]] = {}
    for column in columns:
        quantity = column.quantity
        value = cell(row.get(column.name), decimal_comma=units.decimal_comma)
        number = None if value is None else _in_base(value, column.name, quantity, units)
        if number is None or quantity.what is None:
            continue
        if quantity.statistic in ("low", "high"):
            ends.setdefault(quantity.what, {})[quantity.statistic] = number
        else:
            found.setdefault((_key(quantity), quantity.statistic or ""), number)
    for what, pair in ends.items():
        found.setdefault((what, ""), sum(pair.values()) / len(pair))
    _settle_sums(found)
    return found


def _settle_sums(found: Numbers) -> None:
    """`output_tokens` may be those of a request or of all: too many for a request's latency, they are of all."""
    requests, tpot, e2e = (centre(found, what) for what in ("requests", "tpot", "e2e"))
    for what in ("input_tokens", "output_tokens"):
        count = found.get((what, ""))
        if count is None or requests is None or requests <= 1 or (what, "sum") in found:
            continue
        too_slow = what == "output_tokens" and tpot and e2e and tpot * (count - 1) > checks.NEAR * e2e
        if too_slow or count > LONGEST:
            found[what, "sum"] = found.pop((what, ""))


def _key(quantity: Quantity) -> str:
    """The quantity, with the subject where it is of one request or one GPU."""
    what = quantity.what or ""
    if what == "token_rate" and quantity.side in ("input", "both"):
        return f"{quantity.side}_rate"
    if what == "token_rate" and quantity.per:
        return f"token_rate_per_{quantity.per}"
    if what == "token_rate" and quantity.instrument == "engine":
        return "engine_token_rate"
    return what


def _in_base(value: Value, name: str, quantity: Quantity, units: Units) -> float | None:
    if quantity.is_time:
        unit = value.unit if value.unit and seconds_in(value.unit) else quantity.unit
        seconds = seconds_in(units.wrong or unit or units.time or "")
        if quantity.what == "duration":
            seconds = seconds_in(unit or "s")  # of a run; counts and rates contradict another unit
        if value.unit and seconds_in(value.unit):
            seconds = seconds_in(value.unit)
        return None if seconds is None else value.value * seconds
    if quantity.what in RATES:
        return value.value / (seconds_in(quantity.unit or "s") or 1.0)
    if quantity.what in SHARES:
        percent = value.unit == "percent" or quantity.unit == "percent" or name in units.percent
        return value.value / 100 if percent else value.value
    if quantity.what in LENGTHS and value.scale > 1:
        return value.value / value.scale * (1024 if value.scale == 1e3 else 1024**2)
    return value.value


def centre(found: Mapping[tuple[str, str], float], what: str) -> float | None:
    """The mean, else what the name leaves open, else the median; zero stands for not measured, as tools write it."""
    return next((value for name in CENTRE if (value := found.get((what, name)))), None)


def point_of(found: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """A row as the laws of arithmetic ask for it."""

    def of(what: str) -> float | None:
        return centre(found, what)

    requests = found.get(("requests", ""))
    made = found.get(("output_tokens", "sum"))
    said: dict[str, float | None] = {
        "tok_s": of("token_rate"),
        "engine_tok_s": of("engine_token_rate") or (of("token_rate") if of("concurrency") is None else None),
        "own_tok_s": of("token_rate_per_request"),
        "requests_s": of("request_rate"),
        "tpot": of("tpot"),
        "itl": of("itl"),
        "ttft": of("ttft"),
        "e2e": of("e2e"),
        "step": of("step"),
        "streams": of("concurrency"),
        "running": of("running"),
        "output": made / requests if made and requests else of("output_tokens"),
        "output_sum": made,
        "requests": requests,
        "duration": of("duration"),
    }
    return {name: value for name, value in said.items() if value}


def units_of(rows: Sequence[Row], roles: Roles, *, decimal_comma: bool = False) -> Units:
    """Settle for the whole table what its names leave open or state wrongly."""
    columns = (*roles.measures, *roles.loads, *roles.others)
    percent = frozenset(
        c.name
        for c in columns
        if c.quantity.what in SHARES and _largest(rows, c.name, decimal_comma=decimal_comma) > 1.5
    )
    unsaid = [c for c in columns if c.quantity.is_time and c.quantity.unit is None and not _lasts(c)]
    said = [c for c in columns if c.quantity.is_time and c.quantity.unit is not None and not _lasts(c)]
    plain = Units(None, None, percent, decimal_comma)
    loads = [c for c in columns if not c.quantity.is_time or _lasts(c)]
    time = _the_one_that_fits(rows, [*loads, *unsaid], plain, ("s", "ms")) if unsaid else None
    wrong = None
    if said and not _fits(rows, [*loads, *said], plain, 1.0, default=True):
        stated = {c.quantity.unit for c in said}
        factors = {"ms": ("s", 1e3), "s": ("ms", 1e-3)}.get(str(stated.pop()) if len(stated) == 1 else "")
        if factors and _fits(rows, [*loads, *said], plain, factors[1], default=False):
            wrong = factors[0]
    return Units(time, wrong, percent, decimal_comma)


def _lasts(column: Column) -> bool:
    return column.quantity.what == "duration"


def _the_one_that_fits(
    rows: Sequence[Row], columns: Sequence[Column], units: Units, candidates: Sequence[str]
) -> str | None:
    fitting = [
        unit for unit in candidates if _fits(rows, columns, units._replace(time=unit), 1.0, default=False)
    ]
    return fitting[0] if len(fitting) == 1 else None


def _fits(
    rows: Sequence[Row], columns: Sequence[Column], units: Units, factor: float, *, default: bool
) -> bool:
    places = dict.fromkeys(c.place for c in columns)
    asked = []
    for row in rows:
        for place in places:
            mine = [c for c in columns if c.place in (place, ("", ()))]
            point = dict(point_of(numbers(row, mine, units)))
            point |= {"streams": at["concurrency"]} if "concurrency" in (at := dict(place[1])) else {}
            asked.append(checks.fits(point, factor))
    told = [one for one in asked if one is not None]
    return all(told) if told else default


def _largest(rows: Sequence[Row], name: str, *, decimal_comma: bool) -> float:
    values: list[Any] = [cell(row.get(name), decimal_comma=decimal_comma) for row in rows]
    return max((value.value for value in values if value is not None), default=0.0)
