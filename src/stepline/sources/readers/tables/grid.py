"""Finds the tables in a text, whatever the layout: CSV, TSV, semicolons, Markdown, drawn boxes, aligned columns.

Comments, titles and prose around a table are passed over. A layout is taken for a table where its header names a
quantity; which quantities those are is told elsewhere.
"""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

Split = Callable[[str], list[str]]

_BARS = str.maketrans({"│": "|", "┃": "|", "║": "|", "┆": "|"})
_DRAWN = re.compile(r"^[\s|+:=_\-─━═┄┼╇╪┌┐└┘├┤┬┴┏┓┗┛┡┩┢┪╒╕╘╛╞╡╤╧╔╗╚╝╠╣╦╩╟╢]*$")
_COMMENT = re.compile(r"^\s*(?:#|//|--\s|;)\s*")
_GAP = re.compile(r"\s{2,}|\t+")
DELIMITERS = ("\t", ";", ",")
MAX_COLUMNS = 512


class Grid(NamedTuple):
    """A table as text: names of columns, and rows with the line of the text each stands in (from 1)."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    header_line: int
    layout: str
    """`comma`, `semicolon`, `tab`, `bars`, `aligned` by two blanks and more, or `words` by one."""
    damaged: int = 0
    """Rows with more cells than the header."""


def grids(
    lines: Sequence[str],
    is_header: Callable[[Sequence[str]], bool],
    is_side: Callable[[Sequence[str]], bool] = lambda _names: False,
) -> Iterator[Grid]:
    """Every table of a text.

    Args:
        lines: the text.
        is_header: whether these cells of one line name quantities.
        is_side: whether these cells, the first of each line, do: then the header may be anything.
    """
    at = 0
    while at < len(lines):
        found = _grid_at(lines, at, is_header) or _turned_at(lines, at, is_side)
        if found is None:
            at += 1
            continue
        yield found
        at = found.lines[-1] if found.lines else found.header_line


def _grid_at(lines: Sequence[str], at: int, is_header: Callable[[Sequence[str]], bool]) -> Grid | None:
    """The table whose header is this line."""
    text = lines[at].translate(_BARS)
    for bare in dict.fromkeys((text, _COMMENT.sub("", text))):
        for layout, split in _layouts(bare):
            names = tuple(split(bare))
            if not 1 <= len(names) <= MAX_COLUMNS or not is_header(names):
                continue
            if len(names) == 1 and not _column_of_numbers(lines, at):
                continue
            grid = _body(lines, at, names, layout, split)
            if grid.rows and (layout != "words" or _numeric(grid)):
                return grid
    return None


def _turned_at(lines: Sequence[str], at: int, is_side: Callable[[Sequence[str]], bool]) -> Grid | None:
    """The table below this line that names its quantities in the first column."""
    text = lines[at].translate(_BARS)
    for layout, split in _layouts(text):
        names = tuple(split(text))
        if layout in ("column", "words") or not 2 <= len(names) <= MAX_COLUMNS:
            continue
        if any(re.match(r"[~<>]?[-+]?\d[\d.,]*$", name) for name in names[1:]) or text.rstrip().endswith(":"):
            continue  # values already: a list of names and values has no header
        if layout == "aligned" and at + 1 < len(lines) and len(split(lines[at + 1])) == len(names) + 1:
            names = ("", *names)  # the corner is empty
        grid = _body(lines, at, names, layout, split)
        if len(grid.rows) > 1 and is_side([cells[0] for cells in grid.rows]):
            return grid
    return None


def _column_of_numbers(lines: Sequence[str], at: int) -> bool:
    """True where one number and nothing else stands in each of the lines below: a table of one column."""
    below = [line.strip() for line in lines[at + 1 : at + 3] if line.strip()]
    return bool(below) and all(re.fullmatch(r"[-+]?\d+(?:\.\d+)?", line) for line in below)


def _numeric(grid: Grid) -> bool:
    """True where most cells of the first row are numbers: single blanks separate words of prose too."""
    cells = grid.rows[0]
    return 2 * sum(bool(re.match(r"[~<>]?[-+]?\d", one)) for one in cells) >= len(cells)


def _layouts(line: str) -> Iterator[tuple[str, Split]]:
    """How this line may be cut into cells, the surest first."""
    if "|" in line:
        yield "bars", _bars
    for delimiter in DELIMITERS:
        if delimiter in line:
            yield {"\t": "tab", ";": "semicolon", ",": "comma"}[delimiter], _by(delimiter)
    if _GAP.search(line.strip()):
        yield "aligned", _aligned
    if not any(sign in line for sign in "|;,\t:") and len(line) < 60:
        yield "column", lambda text: [text.strip()]
    if " " in line.strip() and re.fullmatch(r"[\w\s/%.()@#-]+", line) and not _DRAWN.match(line[:3]):
        yield "words", str.split


def _by(delimiter: str) -> Split:
    def split(line: str) -> list[str]:
        return [
            cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
        ]

    return split


def _bars(line: str) -> list[str]:
    cells = [cell.strip() for cell in line.strip().split("|")]
    if cells and not cells[0]:
        cells = cells[1:]
    return cells[:-1] if cells and not cells[-1] else cells


def _aligned(line: str) -> list[str]:
    return [cell for cell in _GAP.split(line.strip()) if cell]


def _body(lines: Sequence[str], at: int, names: tuple[str, ...], layout: str, split: Split) -> Grid:
    """Rows below a header, up to the first line that is none."""
    rows: list[tuple[str, ...]] = []
    places: list[int] = []
    damaged = 0
    for index in range(at + 1, len(lines)):
        text = lines[index].translate(_BARS)
        if not text.strip():
            if layout in ("bars", "aligned", "words") and rows:
                break
            continue
        if _DRAWN.match(text):
            continue
        cells = _cells(text, layout, split, len(names))
        if cells is None:
            if _COMMENT.match(text):
                continue
            if len(split(text)) > len(names) and layout in ("comma", "semicolon", "tab"):
                damaged += 1
                continue
            break
        rows.append(cells)
        places.append(index + 1)
    return Grid(names, tuple(rows), tuple(places), at + 1, layout, damaged)


def _cells(text: str, layout: str, split: Split, width: int) -> tuple[str, ...] | None:
    """The cells of a row; None where the line is none. Cells may be missing at the end of a delimited row."""
    try:
        cells = split(text)
    except csv.Error:
        return None
    while len(cells) > width and not cells[-1]:
        cells = cells[:-1]
    least = width if layout in ("aligned", "words", "column") else 2
    if not least <= len(cells) <= width:
        return None
    if layout in ("aligned", "words", "column") and not any(re.search(r"\d", cell) for cell in cells):
        return None
    return (*cells, *[""] * (width - len(cells)))
