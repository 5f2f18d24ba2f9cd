"""Markdown from text that servers wrote: nothing of it is active."""

import re
from collections.abc import Iterable, Sequence

_ACTIVE = re.compile(r"([\\`*_{}\[\]<>#|!@~$&])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def plain(content: str) -> str:
    """Text without control characters, its Markdown and HTML signs escaped."""
    return _ACTIVE.sub(r"\\\1", _CONTROL.sub(" ", content)).replace("\\<", "&lt;").replace("\\>", "&gt;")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table, all columns but the first to the right; cells are escaped here."""
    ruler = ["---", *("---:" for _ in head[1:])]
    cells = [[plain(cell) for cell in row] for row in (head, *rows)]
    return [f"| {' | '.join(row)} |" for row in (cells[0], ruler, *cells[1:])]


def bullets(title: str, entries: Iterable[str]) -> list[str]:
    """A titled list; nothing where it is empty."""
    told = [f"- {plain(entry)}" for entry in entries]
    return [f"**{title}**", "", *told, ""] if told else []
