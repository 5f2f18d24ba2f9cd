"""Load levels and steps from the rows of a table, in an order of their own: that of the rows says nothing."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from stepline.evidence.load import LoadLevel, StepRow
from stepline.evidence.origin import Origin
from stepline.evidence.run import ReadingDoubt
from stepline.sources.quantities import checks
from stepline.sources.quantities.cells import cell
from stepline.sources.quantities.quantity import parse
from stepline.sources.readers.tables.order import arm_key
from stepline.sources.readers.tables.point import Numbers, Units, centre, numbers, point_of
from stepline.sources.readers.tables.roles import Column, Roles, Row

GRAPH_ON = frozenset(("true", "1", "yes", "on"))
_FIELD_OF = {
    "tok_s": ("tok_s",),
    "own_tok_s": ("tok_s_per_request",),
    "requests_s": ("requests_s",),
    "tpot": ("tpot_ms", "tpot_p50_ms", "tpot_p99_ms"),
    "ttft": ("ttft_ms", "ttft_p50_ms", "ttft_p99_ms"),
    "e2e": ("e2e_ms",),
    "itl": ("itl_ms",),
    "running": ("running",),
    "streams": ("concurrency",),
    "output": ("output_tokens",),
    "output_sum": ("output_tokens",),
    "requests": ("requests",),
    "duration": ("duration_s",),
    "step": (),
    "engine_tok_s": (),
}
"""Fields of a level behind a quantity that the laws of arithmetic doubt."""


class Table(NamedTuple):
    """Rows with what their columns are and where each stands."""

    rows: Sequence[Row]
    origins: Sequence[Origin]
    roles: Roles
    units: Units
    arms: tuple[str, ...]
    """Labels that tell the servers of this table apart."""

    def identity(self, row: Row) -> tuple[tuple[str, str], ...]:
        """What tells the server behind this row from others."""
        return tuple((name, text(row, name)) for name in self.arms)


def text(row: Row, name: str) -> str:
    """A cell as it was written; empty when absent."""
    value = row.get(name)
    return "" if value is None else str(value).strip()


def table_of(rows: Sequence[Row], origins: Sequence[Origin], roles: Roles, units: Units) -> Table:
    """A table with the labels that matter: a name of a row does where it tells all rows of one load apart."""
    varying = [name for name in roles.labels if len({text(row, name) for row in rows}) > 1]
    arms = list(varying)
    maybes = [name for name in roles.maybes if len({text(row, name) for row in rows}) > 1]
    loads = [
        (
            *(text(row, c.name) for c in roles.loads),
            *(text(row, name) for name in (*varying, *roles.workloads, *roles.repeats)),
        )
        for row in rows
    ]
    whole = [(*load, *(text(row, name) for name in maybes)) for load, row in zip(loads, rows, strict=True)]
    if len(set(loads)) < len(loads) and len(set(whole)) == len(whole):
        arms += maybes
    return Table(rows, origins, roles, units, tuple(arms))


def levels_of(table: Table) -> tuple[list[LoadLevel], list[StepRow], list[ReadingDoubt]]:
    """Everything that single rows say, sorted by arm and load."""
    levels: list[LoadLevel] = []
    steps: list[StepRow] = []
    loaded = {c.quantity.what for c in table.roles.loads}
    if not table.roles.measures and "running" not in loaded:
        return [], [], []  # GPU counters, as a rule of many rows
    broken: dict[str, list[tuple[str, Origin]]] = {}
    for row, origin in zip(table.rows, table.origins, strict=True):
        found = list(_levels(table, row, origin, broken))
        levels += found
        step = _step(table, row, origin)
        if step is not None:
            steps.append(step)
    levels.sort(key=_order)
    steps.sort(key=lambda one: (one.running, one.context_tokens or 0.0, one.step_ms or 0.0, one.tok_s or 0.0))
    return levels, steps, [_doubt(places) for places in broken.values()]


def _doubt(places: Sequence[tuple[str, Origin]]) -> ReadingDoubt:
    """One sentence for a law, however many rows break it."""
    text, origin = places[0]
    more = f", and so in {len(places) - 1} further rows" if len(places) > 1 else ""
    return ReadingDoubt(topic="contradiction", text=text + more, origin=origin)


def _order(level: LoadLevel) -> tuple[Any, ...]:
    loads = (
        level.start_s,
        level.concurrency,
        level.running,
        level.input_tokens,
        level.request_rate_s,
        level.tok_s,
    )
    return (
        arm_key(level.arm or ""),
        tuple(-1.0 if value is None else value for value in loads),
        level.tpot_ms or 0.0,
    )


def _levels(
    table: Table, row: Row, origin: Origin, broken: dict[str, list[tuple[str, Origin]]]
) -> Iterator[LoadLevel]:
    measures = table.roles.measures
    shared = [*table.roles.loads, *table.roles.others]
    places = list(dict.fromkeys(column.place for column in measures)) or [("", ())]
    if any(words for words, _ in places):  # what no arm is named for belongs to all of them
        places = [place for place in places if place[0] or place[1]] or places
    label = [f"{name}={value}" for name, value in table.identity(row) if value]
    for words, at in sorted(places):
        mine = [c for c in measures if c.place == (words, at)]
        common = (
            [c for c in measures if c.place == ("", ()) and (words, at) != ("", ())]
            if len(places) == 1
            else []
        )
        found = numbers(row, [*mine, *common, *shared], table.units)
        found.update({(what, ""): number for what, number in at})
        fields = fields_of(found)
        if not _worth(fields, measured=bool(mine)):
            continue
        if _is_prefill(table, row):
            continue
        fields, texts = without_contradictions(fields, found)
        for law, said in texts.items():
            broken.setdefault(law, []).append((said, origin))
        arms = ", ".join([*label, *([f"arm={words}"] if words else [])])
        yield LoadLevel(origin=origin, arm=arms or None, **fields)


def _is_prefill(table: Table, row: Row) -> bool:
    """True where the work that was asked for is prompts alone: `pp512` of llama-bench, or a phase called prefill."""
    asked = [text(row, name) for name in table.roles.workloads]
    return any(re.fullmatch(r"pp ?\d+", one) or parse(f"{one} tok/s").side == "input" for one in asked if one)


def _worth(fields: Mapping[str, Any], *, measured: bool) -> bool:
    """True where the row says how a load was served, or at least what ran."""
    said = {name for name, value in fields.items() if value is not None}
    if measured:
        return bool(
            said - {"concurrency", "running", "queued", "input_tokens", "output_tokens", "start_s", "end_s"}
        )
    return bool(fields.get("running"))


def fields_of(found: Numbers) -> dict[str, Any]:
    """Fields of a LoadLevel."""

    def of(what: str) -> float | None:
        return centre(found, what)

    def ms(what: str, statistic: str | None = None) -> float | None:
        value = of(what) if statistic is None else found.get((what, statistic))
        return value * 1000 if value else None

    def whole(what: str) -> int | None:
        value = found.get((what, ""), found.get((what, "sum")))
        return None if value is None else int(value)

    def length(side: str) -> float | None:
        total, done = found.get((f"{side}_tokens", "sum")), found.get(("requests", ""))
        return total / done if total and done else of(f"{side}_tokens")  # measured before asked for

    tok_s, gpus = of("token_rate"), of("gpus") or of("tp")
    if tok_s is None and gpus is not None and (each := of("token_rate_per_gpu")) is not None:
        tok_s = each * gpus
    prompt = length("input")
    itl, tpot = ms("itl"), ms("tpot")
    # A client that tells the time per token too counts gaps between chunks, which may hold several tokens.
    chunks = itl is not None and tpot is not None
    return {
        "concurrency": of("concurrency"),
        "request_rate_s": of("offered_rate"),
        "running": of("running"),
        "queued": found.get(("waiting", "mean"), found.get(("waiting", ""))),
        "pool_usage": of("kv_usage"),
        "requests": whole("requests"),
        "failed": whole("failed"),
        "duration_s": of("duration"),
        "start_s": found.get(("start", "")),
        "end_s": found.get(("end", "")),
        "input_tokens": prompt if prompt is not None else of("context"),
        "output_tokens": length("output"),
        "tok_s": tok_s,
        "tok_s_per_request": of("token_rate_per_request"),
        "requests_s": of("request_rate"),
        "tpot_ms": ms("tpot"),
        "tpot_p50_ms": ms("tpot", "p50"),
        "tpot_p99_ms": ms("tpot", "p99"),
        "ttft_ms": ms("ttft"),
        "ttft_p50_ms": ms("ttft", "p50"),
        "ttft_p99_ms": ms("ttft", "p99"),
        "itl_ms": ms("token_gap") if chunks or itl is None else itl,
        "chunk_gap_ms": itl if chunks else ms("chunk_gap"),
        "e2e_ms": ms("e2e"),
        "client_queue_ms": ms("client_queue"),
        "accept_length": of("accept_length"),
        "cached_share": of("cache_hit"),
    }


def without_contradictions(
    fields: Mapping[str, Any], found: Numbers
) -> tuple[dict[str, Any], dict[str, str]]:
    """The fields that no law of arithmetic doubts, and a sentence for each law that is broken."""
    kept = dict(fields)
    texts: dict[str, str] = {}
    for misfit in checks.misfits(point_of(found)):
        for name in misfit.drop:
            kept.update(dict.fromkeys(_FIELD_OF.get(name, ())))
        texts[misfit.law] = f"{misfit.text}: {', '.join(sorted(misfit.drop))} not used"
    return kept, texts


def _step(table: Table, row: Row, origin: Origin) -> StepRow | None:
    """A step for a running batch, where the row states one and no client stands between."""
    mine = [c for c in table.roles.measures if not c.words]
    found = numbers(row, [*mine, *table.roles.loads, *table.roles.others], table.units)
    running, step = centre(found, "running"), centre(found, "step")
    rate = centre(found, "engine_token_rate") or centre(found, "token_rate")
    if not running or centre(found, "concurrency") is not None or table.identity(row):
        return None
    if step is None and (rate is None or centre(found, "itl") is not None):
        return None
    if any({"step", "running"} <= misfit.drop for misfit in checks.misfits(point_of(found))):
        return None
    return StepRow(
        origin=origin,
        running=running,
        step_ms=None if step is None else step * 1000,
        tok_s=rate,
        context_tokens=centre(found, "context"),
        graph=_graph(row, table.roles.others),
    )


def _graph(row: Row, others: Sequence[Column]) -> bool | None:
    for column in others:
        if column.quantity.what == "graph" and (said := text(row, column.name).lower()):
            number = cell(said)
            return bool(number.value) if number is not None else said in GRAPH_ON
    return None
