"""Experiments in a table: two servers that differ in one setting under one load, in rows or in columns."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from stepline.evidence.load import LeverTrial
from stepline.evidence.origin import Origin
from stepline.facts.settings.move import assigned
from stepline.sources.quantities.cells import cell
from stepline.sources.quantities.quantity import Quantity, is_unnamed_time, parse
from stepline.sources.quantities.words import vocabulary
from stepline.sources.readers.tables.levels import Table, text
from stepline.sources.readers.tables.order import arm_key
from stepline.sources.readers.tables.point import RATES, centre, numbers
from stepline.sources.readers.tables.roles import BEST, CENTRAL, MEASURES, Column, Row, is_change

MAX_LENGTH_RATIO = 1.25
"""Arms whose outputs differ more in length than this did not do the same work."""
Identity = tuple[tuple[str, str], ...]


def trials_of(table: Table) -> list[LeverTrial]:
    """Every comparison that the table allows, in an order of their own."""
    return sorted([*_by_row(table), *_by_column(table)], key=_order)


def changes_of(table: Table) -> list[LeverTrial]:
    """What a list of changes says of each: then its rows are no load levels."""
    return sorted(_by_change(table), key=_order)


def _order(trial: LeverTrial) -> tuple[Any, ...]:
    loads = (trial.running, trial.concurrency, trial.context_tokens)
    sized = tuple(-1.0 if value is None else value for value in loads)
    return trial.lever, trial.value_before or "", sized, trial.condition or "", trial.before, trial.after


def _by_row(table: Table) -> Iterator[LeverTrial]:
    """Rows that differ in one label alone, repeats averaged."""
    compared = _best(table)
    for column in compared:
        groups: dict[Identity, list[int]] = {}
        for index, row in enumerate(table.rows):
            if _value(table, row, column):
                groups.setdefault(_identity(table, row), []).append(index)
        for label in table.arms:
            yield from _pairs(table, groups, label, column)


def _pairs(
    table: Table, groups: Mapping[Identity, list[int]], label: str, column: Column
) -> Iterator[LeverTrial]:
    alike: dict[Identity, dict[str, list[int]]] = {}
    for identity, members in groups.items():
        rest = tuple(item for item in identity if item[0] != label)
        alike.setdefault(rest, {})[dict(identity)[label]] = members
    for arms in alike.values():
        ordered = sorted((value for value in arms if value), key=lambda value: arm_key(f"{label}={value}"))
        for before, after in _compared(ordered):
            old, new = arms[before], arms[after]
            if not _same_length(table, old, new):
                continue
            row = table.rows[new[0]]
            yield LeverTrial(
                origin=min((table.origins[index] for index in new), key=lambda origin: origin.line or 0),
                lever=f"{label}={after}",
                value_before=before,
                before=_mean(table, old, column),
                after=_mean(table, new, column),
                measure=_measure(column),
                **_conditions(table, row, column, column.words or None),
            )


def _compared(ordered: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each with the first, and with the next one: of a cap raised twice both steps count."""
    seen = dict.fromkeys([(ordered[0], other) for other in ordered[1:]] if ordered else [])
    seen.update(dict.fromkeys(pairwise(ordered)))
    yield from seen


def _by_column(table: Table) -> Iterator[LeverTrial]:
    """Columns of one quantity and load that differ in their words alone."""
    columns = _best(table)
    for at in dict.fromkeys(column.quantity.at for column in columns):
        arms = {c.words: c for c in columns if c.quantity.at == at}
        ordered = sorted(arms, key=arm_key)
        if len(ordered) < 2:
            continue
        for row, origin in zip(table.rows, table.origins, strict=True):
            for old, new in _compared(ordered):
                before, after = (_value(table, row, arms[words]) for words in (old, new))
                if not before or not after:
                    continue
                name, told = _named(arms[old], arms[new])
                yield LeverTrial(
                    origin=origin,
                    lever=f"{name}={told[1]}",
                    value_before=told[0],
                    before=before,
                    after=after,
                    measure=_measure(arms[new]),
                    **_conditions(table, row, arms[new], None),
                )


def _named(old: Column, new: Column) -> tuple[str, tuple[str, str]]:
    """What two columns differ in: the setting that both heads assign, else their words."""
    ours, theirs = assigned(old.name), assigned(new.name)
    if ours is not None and theirs is not None and ours[0] == theirs[0]:
        return ours[0], (ours[1], theirs[1])
    return "arm", (old.words or "without", new.words or "without")


def _by_change(table: Table) -> Iterator[LeverTrial]:
    """Rows that name a change, with what was measured before and after it, or by how many percent it changed."""
    names = sorted({name for row in table.rows for name in row})
    named = [name for name in (*table.roles.labels, *table.roles.maybes) if _in_words(table.rows, name)]
    label = next(iter(sorted(named, key=lambda name: not is_change(name))), None)
    if label is None:
        return
    plain = {name: parse(name) for name in names}
    ends = _ends(plain, told=is_change(label))
    share = [name for name, q in plain.items() if q.unit == "percent" and "difference" in (q.refused or "")]
    for row, origin in zip(table.rows, table.origins, strict=True):
        lever = text(row, label)
        before, after, measure = None, None, "tok_s"
        if len(ends) == 2:
            one, other = (
                cell(row.get(ends[state]), decimal_comma=table.units.decimal_comma)
                for state in ("before", "after")
            )
            before, after = (value.value if value else None for value in (one, other))
            timed = is_unnamed_time(plain[ends["before"]]) or plain[ends["before"]].is_time
            measure = "ms" if timed else "tok_s"
        elif len(share) == 1 and (change := cell(row.get(share[0]))) is not None:
            before, after = 100.0, 100.0 + change.value
        if not lever or not before or not after or after <= 0:
            continue
        loads = numbers(row, table.roles.loads, table.units)
        yield LeverTrial(
            origin=origin,
            lever=lever,
            running=centre(loads, "running"),
            concurrency=centre(loads, "concurrency"),
            before=before,
            after=after,
            measure="ms" if measure == "ms" else "tok_s",
        )


def _ends(plain: Mapping[str, Quantity], *, told: bool) -> dict[str, str]:
    """The columns before and after; under the name of a quantity only where changes are listed."""
    found: dict[str, str] = {}
    for name, quantity in plain.items():
        measured = quantity.what is None or (told and quantity.what in MEASURES)
        if measured and len(quantity.arm) == 1 and not quantity.unknown and quantity.refused is None:
            found.setdefault(vocabulary()[(quantity.arm[0],)]["arm"], name)
    return found


def _in_words(rows: Sequence[Row], name: str) -> bool:
    return any(text(row, name) and cell(row.get(name)) is None for row in rows)


def _best(table: Table) -> list[Column]:
    """The columns to compare by: of the best quantity, one for each arm and load that stand in names."""
    for what in BEST:
        for per in (None, "request", "gpu"):
            seen: dict[tuple[Any, ...], Column] = {}
            for column in sorted(table.roles.measures, key=_preferred):
                q = column.quantity
                if (
                    (q.what, q.per) == (what, per)
                    and q.statistic in CENTRAL
                    and q.side not in ("input", "both")
                ):
                    seen.setdefault(column.place, column)
            if any(_value(table, row, column) for column in seen.values() for row in table.rows):
                return list(seen.values())
    return []


def _preferred(column: Column) -> tuple[int, str]:
    order = ("mean", None, "p50", "low", "high")
    return order.index(column.quantity.statistic) if column.quantity.statistic in order else 9, column.name


def _value(table: Table, row: Row, column: Column) -> float | None:
    """A rate a second, or a time in ms."""
    found = numbers(row, [column], table.units)
    value = next(iter(found.values()), None)
    return value if value is None or column.quantity.what in RATES else value * 1000


def _measure(column: Column) -> Any:
    return "tok_s" if column.quantity.what in RATES else "ms"


def _identity(table: Table, row: Row) -> Identity:
    """What must be equal in two rows that are compared: labels, loads and the work asked for."""
    roles = table.roles
    varying = [name for name in roles.maybes if name not in table.arms]
    lengths = ("output_tokens",)
    loads = [c.name for c in roles.loads if c.quantity.what not in lengths and not _observed(c)]
    return tuple((name, text(row, name)) for name in (*table.arms, *varying, *roles.workloads, *loads))


def _observed(column: Column) -> bool:
    """True for a batch that was measured and not asked for: it is an outcome."""
    return column.quantity.what == "running" and column.quantity.statistic is not None


def _same_length(table: Table, some: Sequence[int], others: Sequence[int]) -> bool:
    lengths = [
        centre(
            numbers(table.rows[index], [*table.roles.loads, *table.roles.others], table.units),
            "output_tokens",
        )
        for index in (some[0], others[0])
    ]
    if lengths[0] is None or lengths[1] is None or 0 in lengths:
        return True
    return max(lengths[0], lengths[1]) / min(lengths[0], lengths[1]) <= MAX_LENGTH_RATIO


def _mean(table: Table, members: Sequence[int], column: Column) -> float:
    values = [_value(table, table.rows[index], column) or 0.0 for index in members]
    return sum(values) / len(values)


def _conditions(table: Table, row: Row, column: Column, condition: str | None) -> dict[str, Any]:
    """Load and workload of a trial."""
    found = numbers(row, [*table.roles.loads], table.units)
    at = dict(column.quantity.at)
    workload = next((text(row, name) for name in table.roles.workloads if text(row, name)), None)
    running = None if any(_observed(c) for c in table.roles.loads) else centre(found, "running")
    return {
        "running": running,
        "concurrency": at.get("concurrency") or centre(found, "concurrency"),
        "context_tokens": at.get("context") or centre(found, "context") or centre(found, "input_tokens"),
        "condition": workload or condition,
    }


def origins_of(trials: Sequence[LeverTrial]) -> set[Origin]:
    """Where trials were read."""
    return {trial.origin for trial in trials}
