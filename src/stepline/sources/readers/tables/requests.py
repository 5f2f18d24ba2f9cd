"""Records of single requests: what they say together is one level."""

from collections import defaultdict
from collections.abc import Sequence

from stepline.evidence.load import LoadLevel
from stepline.evidence.origin import Origin
from stepline.sources.readers.tables.levels import fields_of
from stepline.sources.readers.tables.point import Numbers, Units, centre, numbers
from stepline.sources.readers.tables.roles import Roles, Row

PER_REQUEST = "requests"
"""Origin field of a level that was summed up from records of requests."""
MIN_REQUESTS = 5
"""Records from which a list of them is one: a table of levels seldom has no load in so many rows."""
_OF_ONE = frozenset(("ttft", "tpot", "e2e", "itl"))


def are_requests(rows: Sequence[Row], roles: Roles) -> bool:
    """True for rows that say how long a request took and how many tokens it had, and nothing of any load or rate."""
    whats = {c.quantity.what for c in (*roles.measures, *roles.loads, *roles.others)}
    statistics = {c.quantity.statistic for c in roles.measures}
    lengths = {"input_tokens", "output_tokens"} & whats
    loaded = whats & {"concurrency", "running", "offered_rate", "request_rate", "requests", "duration"}
    rated = any(c.quantity.what == "token_rate" and c.quantity.per is None for c in roles.measures)
    told = len(rows) >= MIN_REQUESTS and bool(lengths) and len(_OF_ONE & whats) >= 2
    return told and not loaded and not rated and statistics == {None} and not roles.labels


def level_of_requests(rows: Sequence[Row], roles: Roles, units: Units, origin: Origin) -> LoadLevel:
    """Means over the requests; rates where the records tell when each began and ended."""
    columns = [*roles.measures, *roles.loads, *roles.others]
    sums: dict[tuple[str, str], list[float]] = defaultdict(list)
    starts: list[float] = []
    ends: list[float] = []
    for row in rows:
        found = numbers(row, columns, units)
        for key, value in found.items():
            sums[key].append(value)
        start, latency = found.get(("start", "")), centre(found, "e2e")
        end = found.get(("end", "")) or (
            start + latency if start is not None and latency is not None else None
        )
        if start is not None and end is not None:
            starts.append(start)
            ends.append(end)
    means: Numbers = {
        key: sum(values) / len(values) for key, values in sums.items() if key[0] not in ("start", "end")
    }
    fields = fields_of(means) | {"requests": len(rows)}
    seconds = max(ends) - min(starts) if starts else 0.0
    if seconds > 0:
        made = sum(sums["output_tokens", ""])
        fields |= {
            "duration_s": seconds,
            "requests_s": len(starts) / seconds,
            "in_flight": sum(end - start for start, end in zip(starts, ends, strict=True)) / seconds,
            "tok_s": made / seconds if made else None,
        }
    return LoadLevel(origin=origin, **fields)
