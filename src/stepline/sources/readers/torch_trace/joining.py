"""Blocks that several processes decoded, as the tables of the whole file."""

from collections import defaultdict

import numpy as np

from stepline.evidence.trace_arrays import Column
from stepline.sources.readers.torch_trace.columns import COLUMNS, TABLES, TEXT_THREADS, Block, Strings

_TEXTS = {"name", "shapes", "dtypes", "grid", "block", "collective"}
"""Columns that hold indices into the strings."""


def joined(shares: list[tuple[list[str], list[Block]]]) -> tuple[list[str], dict[str, Column]]:
    """Strings and tables (a row a column) as one process would have found them, ordered by start.

    Args:
        shares: per process its strings and its blocks; the blocks are used up.
    """
    numbered = sorted(
        ((block, which) for which, (_, blocks) in enumerate(shares) for block in blocks),
        key=lambda pair: pair[0].number,
    )
    strings, moved = _renumbered([texts for texts, _ in shares], numbered)
    tables: defaultdict[str, list[Column]] = defaultdict(list)
    for block, which in numbered:
        for table, rows in block.tables:
            if len(shares) > 1:
                _move(COLUMNS[table], rows, moved[which])
            tables[table].append(rows)
    for _, blocks in shares:
        blocks.clear()
    numbered.clear()
    return strings, {table: _ordered(tables.pop(table, []), len(COLUMNS[table])) for table in TABLES}


def _renumbered(texts: list[list[str]], numbered: list[tuple[Block, int]]) -> tuple[list[str], list[Column]]:
    """All strings in the order of the blocks that bring them, and per process the new index of each old one."""
    index = Strings()
    moved = [np.full(len(own) + 1, -1, np.int64) for own in texts]  # the last one is for index −1
    done = [0] * len(texts)
    for block, which in numbered:
        for old in range(done[which], block.strings):
            moved[which][old] = index[texts[which][old]]
        done[which] = block.strings
    return list(index), moved


def _move(columns: tuple[str, ...], rows: Column, moved: Column) -> None:
    for column, values in zip(columns, rows, strict=True):
        if column in _TEXTS:
            values[:] = moved[values]
        elif column == "thread" and (text := values <= TEXT_THREADS).any():
            values[text] = TEXT_THREADS - moved[TEXT_THREADS - values[text]]


def _ordered(blocks: list[Column], columns: int) -> Column:
    """Row by row, so that the table is in memory once beside its blocks and one unordered row."""
    if not blocks:
        return np.zeros((columns, 0), np.int64)
    row = np.concatenate([block[1] for block in blocks])
    order = np.argsort(row, kind="stable")
    table = np.empty((columns, len(row)), np.int64)
    for number in range(columns):
        np.concatenate([block[number] for block in blocks], out=row)
        np.take(row, order, out=table[number], mode="clip")  # the other modes buffer
    return table
