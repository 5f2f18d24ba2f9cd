"""Load levels, steps and trials from rows: columns that measure, that load, that tell arms apart.

Arms stand in rows (a column `max_num_seqs` with several values) or in columns (`oneshot_tok_s`,
`nccl_tok_s`). A trial compares two arms that differ in one setting at the same load; which one is called
before is only a name.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from stepline.evidence.load import LeverTrial, LoadLevel, StepRow
from stepline.evidence.origin import Origin
from stepline.sources.readers.cells import number, text, whole
from stepline.sources.readers.columns import Column, understand

Row = Mapping[str, Any]

CONCURRENCY: tuple[str, ...] = (
    "c",
    "concurrency",
    "max_concurrency",
    "clients",
    "streams",
    "concurrent_requests",
    "num_concurrent",
)
CONCURRENCY += ("conc", "users", "parallel")
RUNNING: tuple[str, ...] = (
    "running",
    "running_req",
    "running_reqs",
    "num_running",
    "batch",
    "batch_size",
    "bs",
    "n",
    "running_batch",
)
RUNNING += ("running_median", "global_batch")
INPUT = ("input_tokens", "isl", "random_input_len", "prompt_tokens", "input_len", "prompt_len")
OUTPUT = ("output_tokens", "osl", "random_output_len", "output_len", "avg_output_tokens")
CONTEXT = ("context", "context_tokens", "live_context", "ctx", "ctx_tokens", "context_len")
QUEUED = ("queued", "waiting", "queue", "queue_req")
POOL_USAGE = ("pool_usage", "kv_usage", "token_usage")
POOL_USAGE_PCT = ("kv_usage_pct", "kv_usage_percent", "kv_cache_usage_pct")
REQUESTS = ("requests", "completed", "num_prompts", "successful_requests")
FAILED = ("failed", "errors", "num_failed", "failed_requests")
DURATION_S = ("duration_s", "duration")
TOTALS = ("total_input_tokens", "total_output_tokens")
GRAPH = ("graph", "cuda_graph")
WORKLOAD = (
    "phase",
    "workload",
    "dataset",
    "prompt",
    "task",
    "cell",
    "scenario",
    "tokens",
    "model",
    "gpu",
    "start",
    "boot",
)
START_S = ("start_unix_s", "start_s", "start_time")
END_S = ("end_unix_s", "end_s", "end_time")
REPEATS = ("run", "repeat", "rep", "trial", "iter", "iteration", "seed")
OUTCOME = re.compile(r"_(?:s|ms|us|w|gb|pct|iterations|samples|steps|seconds|count)$")
"""Endings of what was measured or counted rather than set."""
STATES = RUNNING + QUEUED + POOL_USAGE + POOL_USAGE_PCT
LOADS = CONCURRENCY + RUNNING + INPUT + CONTEXT + WORKLOAD
KNOWN = (
    LOADS
    + OUTPUT
    + QUEUED
    + POOL_USAGE
    + POOL_USAGE_PCT
    + REQUESTS
    + FAILED
    + DURATION_S
    + START_S
    + END_S
    + TOTALS
    + GRAPH
)
BASELINES: tuple[str, ...] = (
    "old",
    "stock",
    "default",
    "baseline",
    "base",
    "before",
    "main",
    "control",
    "off",
    "without",
    "normal",
)
BASELINES += ("cold", "none", "vanilla", "reference", "ref")
MAX_LENGTH_RATIO = 1.25
"""Arms whose outputs differ more in length than this did not do the same work."""


class Layout(NamedTuple):
    """The columns of a table by their part in it."""

    measures: tuple[Column, ...]
    labels: tuple[str, ...]
    repeats: str | None


def layout_of(rows: Sequence[Row]) -> Layout:
    """Sort columns: what stands left of the first measure (or state) and is no load tells arms apart."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: column for name in names if name not in KNOWN and (column := understand(name))}
    told = columns or [name for name in names if name in STATES]
    first = min((names.index(name) for name in told), default=len(names))
    left = [
        name
        for name in names[:first]
        if name not in KNOWN and name not in columns and not OUTCOME.search(name)
    ]
    repeats = next(
        (name for name in left if name in REPEATS and all(number(row, (name,)) is not None for row in rows)),
        None,
    )
    labels = tuple(
        name
        for name in left
        if name != repeats and len({text(row, name) for row in rows}) > 1 and name not in OUTPUT
    )
    return Layout(tuple(columns.values()), labels, repeats)


def fits(names: Sequence[str]) -> bool:
    """True when the columns are load levels, steps or arms."""
    measured = [column for name in names if name not in KNOWN and (column := understand(name))]
    loaded = [name for name in names if name in CONCURRENCY + RUNNING + INPUT + CONTEXT]
    arms = {column.arm for column in measured} - {None}
    left = [name for name in names if name not in KNOWN and understand(name) is None]
    running_alone = any(name in (*RUNNING[:3], "running_median") for name in names) and bool(left)
    return (bool(measured) and (bool(loaded) or bool(arms) or bool(left))) or running_alone


def levels_and_trials(
    rows: Sequence[Row], origins: Sequence[Origin]
) -> tuple[list[LoadLevel], list[StepRow], list[LeverTrial]]:
    """Everything a table of this kind says."""
    layout = layout_of(rows)
    levels: list[LoadLevel] = []
    steps: list[StepRow] = []
    for row, origin in zip(rows, origins, strict=True):
        levels += _levels(row, origin, layout)
        if (step := _step(row, origin, layout)) is not None:
            steps.append(step)
    return levels, steps, [*_trials_by_row(rows, origins, layout), *_trials_by_column(rows, origins, layout)]


def _levels(row: Row, origin: Origin, layout: Layout) -> Iterator[LoadLevel]:
    """One level a row and arm column; a row that only states a step or a running batch is none."""
    places = dict.fromkeys((column.arm, column.streams, column.context) for column in layout.measures)
    label = ", ".join(f"{name}={text(row, name)}" for name in layout.labels) or None
    for arm, streams, context in places or {(None, None, None): None}:
        mine = [c for c in layout.measures if (c.arm, c.streams, c.context) == (arm, streams, context)]
        fields = _measured(row, mine)
        base = _loaded(row)
        if streams is not None:
            base["concurrency"] = streams
        if context is not None:
            base["input_tokens"] = context
        measured = {name for name in fields if name != "step_ms"}
        if not measured and not (base.get("running") and not layout.measures):
            continue
        fields.pop("step_ms", None)
        arms = ", ".join(part for part in (label, f"arm={arm}" if arm else None) if part)
        yield LoadLevel(origin=origin, arm=arms or None, **{**base, **fields})


def _loaded(row: Row) -> dict[str, Any]:
    """What the row says about load and state."""
    usage, percent = number(row, POOL_USAGE), number(row, POOL_USAGE_PCT)
    done = whole(row, REQUESTS)
    prompt, made = number(row, ("total_input_tokens",)), number(row, ("total_output_tokens",))
    context = number(row, CONTEXT)
    return {
        "concurrency": number(row, CONCURRENCY),
        "running": number(row, RUNNING),
        "queued": number(row, QUEUED),
        "pool_usage": usage if usage is not None else None if percent is None else percent / 100,
        "requests": done,
        "failed": whole(row, FAILED),
        "duration_s": number(row, DURATION_S),
        "start_s": number(row, START_S),
        "end_s": number(row, END_S),
        "input_tokens": _either(number(row, INPUT), context, prompt / done if prompt and done else None),
        "output_tokens": _either(number(row, OUTPUT), made / done if made and done else None),
    }


def _either(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _measured(row: Row, columns: Sequence[Column]) -> dict[str, Any]:
    """Fields of LoadLevel from measuring columns; zero stands for not measured, as the tools write it."""
    found: dict[tuple[str, str], float] = {}
    for column in columns:
        value = number(row, (column.name,))
        if value:
            found.setdefault((column.quantity, column.statistic), value * column.factor)
    fields: dict[str, Any] = {}
    for quantity, field in (("tok_s", "tok_s"), ("tok_s_per_request",) * 2, ("requests_s",) * 2):
        if (value := found.get((quantity, "mean"), found.get((quantity, "p50")))) is not None:
            fields[field] = value
    for quantity in ("tpot", "ttft", "itl", "e2e", "step", "client_queue"):
        mean, median, tail = (found.get((quantity, name)) for name in ("mean", "p50", "p99"))
        if (value := _either(mean, median)) is not None:
            fields[f"{quantity}_ms"] = value
        if quantity in ("tpot", "ttft"):
            if median is not None:
                fields[f"{quantity}_p50_ms"] = median
            if tail is not None:
                fields[f"{quantity}_p99_ms"] = tail
    return fields


def _step(row: Row, origin: Origin, layout: Layout) -> StepRow | None:
    """A step for a running batch, where the row states one and no client stands between."""
    running = number(row, RUNNING)
    fields = _measured(row, [column for column in layout.measures if column.arm is None])
    if not running or number(row, CONCURRENCY) is not None or layout.labels:
        return None
    step, tok_s = fields.get("step_ms"), fields.get("tok_s")
    if step is None and (tok_s is None or "itl_ms" in fields):
        return None
    graph = next((str(row[name]).strip().lower() for name in GRAPH if row.get(name) not in (None, "")), None)
    return StepRow(
        origin=origin,
        running=running,
        step_ms=step,
        tok_s=tok_s,
        context_tokens=number(row, CONTEXT),
        graph=None if graph is None else graph in ("true", "1", "yes", "on"),
    )


def _trials_by_row(rows: Sequence[Row], origins: Sequence[Origin], layout: Layout) -> Iterator[LeverTrial]:
    """Rows that differ in one label alone, repeats averaged; the baseline is named, else the first."""
    column = _best(layout.measures)
    if column is None:
        return
    for place in _places(layout.measures, column.quantity):
        groups: dict[tuple[tuple[str, str], ...], list[int]] = {}
        for index, row in enumerate(rows):
            if number(row, (place.name,)):
                groups.setdefault(_identity(row, layout), []).append(index)
        for label in layout.labels:
            yield from _pairs(groups, label, rows, origins, place)


def _pairs(
    groups: Mapping[tuple[tuple[str, str], ...], list[int]],
    label: str,
    rows: Sequence[Row],
    origins: Sequence[Origin],
    column: Column,
) -> Iterator[LeverTrial]:
    alike: dict[tuple[tuple[str, str], ...], dict[str, list[int]]] = {}
    for identity, members in groups.items():
        rest = tuple(item for item in identity if item[0] != label)
        alike.setdefault(rest, {})[dict(identity)[label]] = members
    for arms in alike.values():
        base = _baseline(list(arms))
        for value, members in arms.items():
            if value == base or not _same_length(rows, arms[base], members):
                continue
            row = rows[members[0]]
            yield LeverTrial(
                origin=origins[members[0]],
                lever=f"{label}={value}",
                value_before=base,
                before=_mean(rows, arms[base], column),
                after=_mean(rows, members, column),
                measure="tok_s" if column.quantity in ("tok_s", "tok_s_per_request", "requests_s") else "ms",
                **_conditions(row, column, across_rows=True),
            )


def _trials_by_column(rows: Sequence[Row], origins: Sequence[Origin], layout: Layout) -> Iterator[LeverTrial]:
    """Columns of one quantity that differ in their arm alone."""
    best = _best(layout.measures)
    for row, origin in zip(rows, origins, strict=True):
        for column in layout.measures:
            if column.quantity == "speedup_pct" and (gain := number(row, (column.name,))) is not None:
                yield LeverTrial(
                    origin=origin,
                    lever=f"{column.arm} instead of {column.base}",
                    before=100.0,
                    after=100.0 + gain,
                    **_conditions(row, column, across_rows=False),
                )
    if best is None:
        return
    arms = {column.arm: column for column in layout.measures if _like(column, best)}
    if len(arms) < 2 or any(column.streams or column.context for column in arms.values()):
        return
    base = _baseline([str(arm) for arm in arms])
    for row, origin in zip(rows, origins, strict=True):
        before = number(row, (next(c.name for arm, c in arms.items() if str(arm) == base),))
        for arm, column in arms.items():
            after = number(row, (column.name,))
            if str(arm) == base or not before or not after:
                continue
            yield LeverTrial(
                origin=origin,
                lever=f"arm={arm}",
                value_before=base,
                before=before * column.factor,
                after=after * column.factor,
                measure="tok_s"
                if column.factor == 1.0 and column.quantity in ("tok_s", "requests_s")
                else "ms",
                **_conditions(row, column, across_rows=False),
            )


def _best(columns: Sequence[Column]) -> Column | None:
    """The column to compare arms by: throughput before times, decode before the whole."""
    for quantity in ("tok_s", "tok_s_per_request", "tpot", "step", "itl", "e2e", "requests_s"):
        for column in columns:
            if column.quantity == quantity and column.statistic != "p99":
                return column
    return None


def _places(columns: Sequence[Column], quantity: str) -> list[Column]:
    """One column of the quantity for each load that stands in the names, arms aside."""
    seen: dict[tuple[Any, ...], Column] = {}
    for column in columns:
        if column.quantity == quantity and column.statistic != "p99":
            seen.setdefault((column.arm, column.streams, column.context), column)
    return list(seen.values())


def _like(column: Column, best: Column) -> bool:
    return (column.quantity, column.statistic == "p99") == (best.quantity, False)


def _identity(row: Row, layout: Layout) -> tuple[tuple[str, str], ...]:
    """What must be equal in two rows that are compared: labels and load."""
    names = [*layout.labels, *(name for name in row if name in LOADS)]
    return tuple((name, text(row, name)) for name in names)


def _same_length(rows: Sequence[Row], some: Sequence[int], others: Sequence[int]) -> bool:
    lengths = [number(rows[index], OUTPUT) for index in (some[0], others[0])]
    if not all(lengths):
        return True
    first, second = (value or 1.0 for value in lengths)
    return max(first, second) / min(first, second) <= MAX_LENGTH_RATIO


def _baseline(arms: Sequence[str]) -> str:
    """The arm whose name says that it is the old state, else the first in the table."""
    for arm in arms:
        if any(word in BASELINES for word in arm.lower().replace("-", "_").split("_")):
            return arm
    return arms[0]


def _mean(rows: Sequence[Row], members: Sequence[int], column: Column) -> float:
    values = [number(rows[index], (column.name,)) or 0.0 for index in members]
    return sum(values) / len(values) * column.factor


def _conditions(row: Row, column: Column, *, across_rows: bool) -> dict[str, Any]:
    """Load and workload of a trial; where rows are compared, a word in the column is a workload."""
    workload = next((text(row, name) for name in WORKLOAD if name in row), None)
    by_column = column.quantity == "speedup_pct" or not across_rows
    return {
        "running": number(row, RUNNING),
        "concurrency": _either(column.streams, number(row, CONCURRENCY)),
        "context_tokens": _either(column.context, number(row, CONTEXT), number(row, INPUT)),
        "condition": workload or (None if by_column else column.arm),
    }
