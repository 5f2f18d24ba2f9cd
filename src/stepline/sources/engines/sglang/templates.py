"""SGLang's batch lines many at a time: where a regular line has its numbers."""

import re
from typing import Any

from stepline.sources.engines.sglang.batch_lines import (
    FIELDS,
    GRAPH_KEYS,
    HEAD,
    NEEDED,
    PAIR,
    POOL_USAGES,
    RECORDS,
)
from stepline.sources.engines.sglang.prefix import MAX_PREFIX, RANK, parse_prefix
from stepline.sources.logs.template import Number, Template, number

_NO_NUMBER = re.compile(r"-?inf%?|nan%?|True|False")


def learn(line: str) -> Template | None:
    """The template of a whole batch line; None for anything less regular."""
    if line.count(" batch") != 1:
        return None
    head = HEAD.search(line)
    if head is None or head.start() > MAX_PREFIX:
        return None
    pairs: dict[str, str] = {}
    places: dict[str, Number] = {}
    end = head.end()
    for match in PAIR.finditer(line, head.end()):
        key, value = match["key"], match["value"]
        if line[end : match.start()] != (", " if pairs else "") or key in pairs:
            return None
        end = match.end()
        pairs[key] = value
        if _NO_NUMBER.fullmatch(value):
            continue
        place = number(value.removesuffix("%"), match.start("value"), 100.0 if value.endswith("%") else 1.0)
        if place is None:
            return None
        places[key] = place
    if "#queue-req" not in pairs or line[end:].strip(", "):
        return None
    wanted = {
        rank[1].lower(): number(rank[2], rank.start(2)) for rank in RANK.finditer(line, 0, head.start())
    }
    for field, keys in FIELDS[head["kind"]].items():
        wanted[field] = next((places[key] for key in keys if key in places), None)
    if any(wanted[field] is None for field in NEEDED[head["kind"]]):
        return None
    wanted |= {key: places[key] for key in POOL_USAGES if key in places}
    return Template(
        record=RECORDS[head["kind"]],
        prefix=(0, head.start()),
        numbers={name: place for name, place in wanted.items() if place is not None},
        graph=next((pairs[key] == "True" for key in GRAPH_KEYS if key in pairs), None),
    )


def complete(columns: dict[str, Any]) -> None:
    """Of several pools the fullest counts."""
    import numpy as np  # noqa: PLC0415  # only for logs of many lines

    usages = [columns.pop(key) for key in POOL_USAGES if key in columns]
    if usages:
        columns["pool_usage"] = np.fmax.reduce(usages)


def time_of(prefix: str) -> float | None:
    """Seconds since the epoch in the log's own time zone."""
    return parse_prefix(prefix).time_s


def goes_on(line: str) -> bool:
    """True for a batch line: it was not learned, so it may be the first part of a wrapped one."""
    return HEAD.search(line) is not None
