"""Markdown from text that servers wrote: GitHub shows it as it is."""

import re
from collections.abc import Iterable, Sequence

_MARKUP = re.compile(r"[\\`*_\[\]#~|$]")
"""Signs that mean something in the middle of a line; no text of others stands at a line's start here."""
_LINKED = re.compile(r"@|:(?=//)|\bwww(?=\.)|\\#(?=\d)|\bGH-(?=\d)", re.IGNORECASE)
"""Where GitHub would begin a mention, a link or a reference to an issue."""
_BREAK = "&#8203;"
"""A zero-width space that a browser draws as nothing and no linker reads across."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """Text that GitHub shows as it is: no markup, no HTML, no mention, no reference, no link."""
    escaped = _CONTROL.sub(" ", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LINKED.sub(rf"\g<0>{_BREAK}", _MARKUP.sub(r"\\\g<0>", escaped))


def code(text: str) -> str:
    """A code span that holds any backticks; for lists, a table would need its pipes escaped."""
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    space = " " if len(fence) > 1 else ""
    return f"{fence}{space}{text}{space}{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table, all columns but the first to the right; cells are escaped here."""
    ruler = ["---", *("---:" for _ in head[1:])]
    cells = [[plain(cell) for cell in row] for row in (head, *rows)]
    return [f"| {' | '.join(row)} |" for row in (cells[0], ruler, *cells[1:])]


def bullets(title: str, entries: Iterable[str]) -> list[str]:
    """A titled list; nothing where it is empty."""
    told = [f"- {plain(entry)}" for entry in entries]
    return [f"**{title}**", "", *told, ""] if told else []
