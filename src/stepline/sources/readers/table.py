"""Tables that people and tools write, told by what their columns measure: load levels, steps, trials, GPU samples."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from stepline.errors import UnreadableEvidence
from stepline.evidence.gpu import GpuSample
from stepline.evidence.load import LeverTrial, LoadLevel, StepRow
from stepline.evidence.merge import merge
from stepline.evidence.origin import Origin
from stepline.evidence.run import EvidenceFile, FileKind, Run
from stepline.sources.commands import commands, read_commands
from stepline.sources.decoded import text_of
from stepline.sources.importers.registry import import_results
from stepline.sources.peek import Peek
from stepline.sources.quantities.cells import cell, decimal_commas
from stepline.sources.quantities.quantity import is_unnamed_time, parse
from stepline.sources.quantities.split import split
from stepline.sources.readers.indented import parse_indented
from stepline.sources.readers.tables import gpu
from stepline.sources.readers.tables.grid import Grid, grids
from stepline.sources.readers.tables.kernels import is_summary, read_summary
from stepline.sources.readers.tables.levels import levels_of, table_of
from stepline.sources.readers.tables.nested import rows_in
from stepline.sources.readers.tables.pairs import blocks, equals
from stepline.sources.readers.tables.point import units_of
from stepline.sources.readers.tables.requests import PER_REQUEST, are_requests, level_of_requests
from stepline.sources.readers.tables.roles import LOADS, Roles, head_of, roles_of
from stepline.sources.readers.tables.trials import changes_of, trials_of

Row = Mapping[str, Any]
MAX_BYTES = 64 << 20
HEAD = 1 << 16
MOST_NAMES = 200
"""Lines of a table that names its quantities at the side; a longer one has them above."""


def recognises(peek: Peek) -> bool:
    """True for a text in whose opening a table or a block of results stands."""
    if peek.binary and not peek.head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    lines = text_of(peek.head[:HEAD]).splitlines()
    return bool(
        next(grids(lines, is_header, is_side), None)
        or next(grids(lines, is_summary), None)
        or len(list(islice(_objects(lines), 2))) == 2
        or next(blocks(lines), None)
        or next(equals(lines), None)
        or next(commands(lines), None)
        or parse_indented(lines)
    )


def columns_of(peek: Peek) -> list[str]:
    """Column names of a file that is laid out as a table, whatever it holds; empty for other text."""
    lines = [] if peek.binary else text_of(peek.head[:HEAD]).splitlines()[:200]
    found = next(grids(lines, lambda names: len(names) > 1 and not any(map(_number, names))), None)
    if found is None or not found.rows or found.layout in ("aligned", "words") or not _plain(found.names):
        return []
    return list(found.names)


def read_table(peek: Peek) -> Run:
    """Read every table and block of results in a text.

    Raises:
        UnreadableEvidence: when none says anything.
    """
    with peek.open() as stream:
        return read_text(text_of(stream.read(MAX_BYTES)), peek.name)


def read_text(content: str, file: str) -> Run:
    """Read what a text holds of tables, `Name: value` blocks and `name=value` lines.

    Raises:
        UnreadableEvidence: when none says anything.
    """
    lines = content.splitlines()
    document = parse_indented(lines)
    if document is not None:
        return _read_document(document, file)
    runs: list[Run] = [*read_commands(lines, file)]
    failed: UnreadableEvidence | None = None
    taken: set[int] = set()
    for grid in grids(lines, lambda names: is_summary(names) or is_header(names), is_side):
        taken.update((grid.header_line, *grid.lines))
        if is_summary(grid.names) and (summary := read_summary(grid, file)) is not None:
            runs.append(summary)
            continue
        try:
            runs.append(_read_grid(grid, file))
        except UnreadableEvidence as error:
            failed = failed or error
    if found_rows := list(_objects(lines)):
        runs += _if_readable(
            lambda: _read_rows([row for _, row in found_rows], [Origin(file, n) for n, _ in found_rows], file)
        )
    left = [line if number not in taken else "" for number, line in enumerate(lines, 1)]
    for kind in (blocks, equals):
        found = list(kind(left))
        if not found:
            continue
        try:
            runs.append(_read_rows([b.values for b in found], [Origin(file, b.line) for b in found], file))
        except UnreadableEvidence as error:
            failed = failed or error
    if not runs:
        raise failed or UnreadableEvidence(f"{file}: no table or block of results that stepline reads")
    return _as_one_file(merge(runs), file)


def _read_document(document: Mapping[str, Any], file: str) -> Run:
    if (imported := import_results(document, file)) is not None:
        return merge(imported)
    rows = rows_of(document)
    if rows is None:
        raise UnreadableEvidence(
            f"{file}: indented names and values, none of which is a quantity stepline uses"
        )
    return read_rows(rows, file)


def read_results_beside(content: str, file: str) -> Run | None:
    """Printed blocks and Markdown tables in a text that something else reads too, such as a log; None without any."""
    lines = content.splitlines()
    runs: list[Run] = []
    for grid in grids(lines, lambda names: is_header(names) and not any(":" in name for name in names)):
        if grid.layout == "bars":
            runs += _if_readable(lambda grid=grid: _read_grid(grid, file))  # type: ignore[misc]
    if found := list(blocks(lines)):
        rows, origins = [b.values for b in found], [Origin(file, b.line) for b in found]
        runs += _if_readable(lambda: _read_rows(rows, origins, file))
    return _as_one_file(merge(runs), file) if runs else None


def _if_readable(read: Callable[[], Run]) -> list[Run]:
    try:
        return [read()]
    except UnreadableEvidence:
        return []


def _as_one_file(run: Run, file: str) -> Run:
    """One line about a file of several tables."""
    if len(run.files) == 1:
        return run
    most = max(run.files, key=lambda one: one.records, default=None)
    first: FileKind = "launch command" if most is None or most.kind is None else most.kind
    others = dict.fromkeys(one.kind for one in run.files if one.kind not in (None, first))
    whole = EvidenceFile(
        path=file,
        kind=first,
        note=f"and {', '.join(map(str, others))}" if others else None,
        records=sum(one.records for one in run.files),
        damaged=sum(one.damaged for one in run.files),
    )
    return msgspec.structs.replace(run, files=(whole,))


def _read_grid(grid: Grid, file: str) -> Run:
    rows: list[Row] = [dict(zip(grid.names, cells, strict=True)) for cells in grid.rows]
    origins = [Origin(file, line) for line in grid.lines]
    cells = [value for row in grid.rows for value in row]
    comma = grid.layout != "comma" and decimal_commas(cells)
    if (turned := _turned(grid)) is not None:
        rows, origins = turned, [Origin(file, grid.header_line)] * len(turned)
    return _read_rows(rows, origins, file, decimal_comma=comma, damaged=grid.damaged)


def is_header(names: Sequence[str]) -> bool:
    """True for cells that name a measurement, or a change with what was before and after it."""
    if any(map(_number, names)):
        return False
    told = [head_of(name) for name in names]
    measured = [q for q in told if q.what is not None]
    arms = {word for q in told for word in q.arm if q.what is None and not q.unknown}
    change = any(q.unit == "percent" and "difference" in (q.refused or "") for q in told)
    if sum(is_unnamed_time(q) for q in told) >= 2:
        return True
    if len(arms) >= 2 or (change and len(names) > 1) or any(q.what not in LOADS for q in measured):
        return True
    return bool(measured) and len(names) >= 2 and _plain(names)


def is_side(names: Sequence[str]) -> bool:
    """True for first cells of lines that name quantities, most of them."""
    told = sum(parse(name).what is not None for name in names)
    return told >= 2 and 2 * told > len(names)


def _objects(lines: Sequence[str]) -> Iterator[tuple[int, Row]]:
    """Lines that are JSON objects with a quantity in them, among lines of anything else."""
    for number, line in enumerate(lines, 1):
        if not line.startswith("{") or not line.rstrip().endswith("}"):
            continue
        try:
            found = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError):
            continue
        for _, row in rows_in(found):
            yield number, row


def _plain(names: Sequence[str]) -> bool:
    """True for short names: a load alone is no sign of a table in prose."""
    return all(len(split(name)) <= 6 and len(name) <= 60 for name in names)


def _number(name: str) -> bool:
    return bool(name) and "%" not in name and not any(character.isalpha() for character in name)


def _turned(grid: Grid) -> list[Row] | None:
    """The rows of a table that names its quantities in the first column; None where the header names them."""
    if len(grid.rows) > MOST_NAMES:
        return None
    first = [cells[0] for cells in grid.rows]
    told = sum(parse(name).what is not None for name in first)
    header = sum(parse(name).what is not None for name in grid.names[1:])
    if told < 2 or told <= header or len(set(first)) < len(first):
        return None
    label = grid.names[0] if parse(grid.names[0]).what is None and grid.names[0] else "arm"
    label = label if split(label) not in (("metric",), ("metrics",), ("name",)) else "arm"
    turned: list[Row] = []
    loads = [parse(name) for name in grid.names[1:]]
    stated = len({load.at[0][0] for load in loads if len(load.at) == 1}) == 1 and all(
        len(load.at) == 1 and not load.words for load in loads
    )
    for place, name in enumerate(grid.names[1:], 1):
        row: dict[str, Any] = {cells[0]: cells[place] for cells in grid.rows}
        if stated:
            what, value = loads[place - 1].at[0]
            turned.append({what: value, **row})
        else:
            turned.append(row if len(grid.names) == 2 else {label: name, **row})
    return turned


def rows_of(document: Any) -> list[Row] | None:
    """The rows of a JSON document, however nested; None where nothing in it is measured."""
    found = [row for _, row in rows_in(document)]
    return list(found) or None


def read_rows(rows: Sequence[Row], file: str, first_line: int | None = None) -> Run:
    """Turn rows into records.

    Raises:
        UnreadableEvidence: when the columns name nothing that stepline knows.
    """
    origins = [
        Origin(file, index + first_line) if first_line else Origin(file, None, f"[{index}]")
        for index in range(len(rows))
    ]
    return _read_rows(rows, origins, file)


def _read_rows(
    rows: Sequence[Row],
    origins: Sequence[Origin],
    file: str,
    *,
    decimal_comma: bool = False,
    damaged: int = 0,
) -> Run:
    if (summary := _summary(rows, file)) is not None:
        return summary
    roles = roles_of(rows)
    if are_requests(rows, roles):
        return _of_requests(rows, roles, file)
    units = units_of(rows, roles, decimal_comma=decimal_comma)
    table = table_of(rows, origins, roles, units)
    trials = changes_of(table)
    levels, steps, doubts = ([], [], []) if trials else levels_of(table)
    trials = trials or trials_of(table)
    if trials:  # a batch beside them is their load
        levels = [level for level in levels if level.tok_s or level.tpot_ms or not _batch_alone(level)]
    samples = (
        [] if levels or steps or trials else gpu.samples_of(rows, origins, roles, decimal_comma=decimal_comma)
    )
    made: list[LoadLevel | StepRow | LeverTrial | GpuSample] = [*levels, *steps, *trials, *samples]
    if not made:
        if timed := _timed(rows):
            note = f"times under {', '.join(timed[:4])}, of what is not said: no evidence of a decode step"
            return Run(files=(EvidenceFile(path=file, kind="micro-benchmark", note=note, records=len(rows)),))
        raise UnreadableEvidence(_nothing(rows, file))
    read = {record.origin for record in made}
    kind: FileKind = (
        "GPU samples" if samples else "levers tried" if not levels and not steps else "load levels"
    )
    missed = sum(1 for origin in set(origins) if origin not in read) if not trials else 0
    evidence = EvidenceFile(path=file, kind=kind, records=len(made), damaged=missed + damaged)
    return Run(
        files=(evidence,),
        levels=tuple(levels),
        step_rows=tuple(steps),
        levers=tuple(trials),
        gpu_samples=tuple(samples),
        doubts=tuple(doubts),
    )


def _summary(rows: Sequence[Row], file: str) -> Run | None:
    """A summary of a profile whose rows came as objects."""
    names = tuple(dict.fromkeys(str(name) for row in rows for name in row))
    if not is_summary(names):
        return None
    cells = tuple(tuple(str(row.get(name, "")) for name in names) for row in rows)
    return read_summary(Grid(names, cells, tuple(range(1, len(cells) + 1)), 1, "comma"), file)


def _of_requests(rows: Sequence[Row], roles: Roles, file: str) -> Run:
    """One level from the records of its requests."""
    level = level_of_requests(rows, roles, units_of(rows, roles), Origin(file, None, PER_REQUEST))
    note = "one level from the records of its requests"
    evidence = EvidenceFile(path=file, kind="load levels", note=note, records=len(rows))
    return Run(files=(evidence,), levels=(level,))


def _batch_alone(level: LoadLevel) -> bool:
    said = {name for name in level.__struct_fields__ if getattr(level, name) is not None}
    return said <= {"origin", "running", "arm", "concurrency", "input_tokens", "output_tokens"}


def _timed(rows: Sequence[Row]) -> list[str]:
    """Columns of times that name no quantity, as of kernels by size."""
    return sorted(
        {
            name
            for row in rows
            for name, value in row.items()
            if is_unnamed_time(parse(name)) and cell(value) is not None
        }
    )


def _nothing(rows: Sequence[Row], file: str) -> str:
    names = list(dict.fromkeys(str(name) for row in rows for name in row))
    reasons = [f"{name!r} ({parse(name).refused})" for name in names if parse(name).refused]
    why = f"; not used: {', '.join(reasons[:3])}" if reasons else ""
    return (
        f"{file}: no row of the table with columns ({', '.join(names[:8])}) states a load level, a step, GPU counters "
        f"or two arms that can be compared{why}; name them for example 'concurrency,tok_s,tpot_ms,ttft_ms', "
        "'running,step_ms' or 'lever,running,before,after'"
    )
