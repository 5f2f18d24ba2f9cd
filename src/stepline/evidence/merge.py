"""Joins what several files said about one server: the first to speak wins, a contradiction is a doubt."""

from collections.abc import Sequence
from typing import Any

import msgspec

from stepline.evidence.run import ReadingDoubt, Run
from stepline.evidence.server import ServerFacts
from stepline.evidence.start import Start

TUPLES = tuple(
    field.name
    for field in msgspec.structs.fields(Run)
    if field.name not in ("schema_version", "id", "server", "start", "model_config", "trace")
)
IDENTITY = (
    "engine",
    "version",
    "model",
    "gpu",
    "tp",
    "context_length",
    "max_running",
    "kv_capacity_tokens",
    "decode_graphs",
)
"""Facts that cannot differ between two files about one start of one server."""


def merge(runs: Sequence[Run]) -> Run:
    """Join runs in order of trust; scheduler records keep their order, one file after the other."""
    if len(runs) < 2:
        return runs[0] if runs else Run()
    server, doubts = runs[0].server, []
    for run in runs[1:]:
        server, more = _merge_server(server, run.server)
        doubts.extend(more)
    joined: dict[str, Any] = {name: sum((getattr(run, name) for run in runs), ()) for name in TUPLES}
    joined["doubts"] = (*joined["doubts"], *doubts)
    for name in ("decodes", "prefills", "events"):
        joined[name] = _renumber(runs, name)
    model_config = next((run.model_config for run in runs if run.model_config is not None), None)
    trace = next((run.trace for run in runs if run.trace is not None), None)
    start = _merge_start([run.start for run in runs if run.start is not None])
    return Run(server=server, start=start, model_config=model_config, trace=trace, **joined)


def _merge_start(starts: Sequence[Start]) -> Start | None:
    """The first word on each point; the times of all."""
    if not starts:
        return None
    fields = {
        field.name: next((value for start in starts if (value := getattr(start, field.name))), None)
        for field in msgspec.structs.fields(Start)
    }
    known = {name: value for name, value in fields.items() if value is not None}
    firsts = [start.first_s for start in starts if start.first_s is not None]
    lasts = [start.last_s for start in starts if start.last_s is not None]
    return Start(**{**known, "first_s": min(firsts, default=None), "last_s": max(lasts, default=None)})


def _renumber(runs: Sequence[Run], name: str) -> tuple[Any, ...]:
    """Shift `seq` so that records of different files never interleave."""
    shifted: list[Any] = []
    base = 0
    for run in runs:
        records = getattr(run, name)
        shifted += (
            [msgspec.structs.replace(record, seq=record.seq + base) for record in records]
            if base
            else records
        )
        base += (
            max(
                (record.seq for kind in (run.decodes, run.prefills, run.events) for record in kind), default=0
            )
            + 1
        )
    return tuple(shifted)


def _merge_server(first: ServerFacts, second: ServerFacts) -> tuple[ServerFacts, list[ReadingDoubt]]:
    changes, doubts = {}, []
    for field in msgspec.structs.fields(ServerFacts):
        known, other = getattr(first, field.name), getattr(second, field.name)
        if known is None:
            changes[field.name] = other
        elif other is not None and field.name in IDENTITY and known.value != other.value:
            doubts.append(
                ReadingDoubt(
                    topic="contradiction",
                    text=(
                        f"{field.name} is {known.value} in {known.origin} but {other.value} in "
                        f"{other.origin}: "
                        "these files may be of two starts of the server; the first was used"
                    ),
                    origin=other.origin,
                )
            )
    return msgspec.structs.replace(first, **changes), doubts
