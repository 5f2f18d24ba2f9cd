"""What terminal reports are made of: cleaned text, marked items, titled lists."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Server text may carry escape sequences; none of them reaches the terminal."""


def clean(content: str) -> str:
    """Text without control characters."""
    return _CONTROL.sub("", content)


def text(content: str, style: str = "") -> "Text":
    """Cleaned text in a style."""
    from rich.text import Text  # noqa: PLC0415  # 0.1 s that only a report needs

    return Text(clean(content), style=style)


def item(mark: str, content: str) -> "Padding":
    """A paragraph behind a mark, indented."""
    from rich.padding import Padding  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="dim", no_wrap=True, min_width=1)
    grid.add_column()
    grid.add_row(mark, text(content))
    return Padding(grid, (0, 0, 0, 3))


def section(console: "Console", title: str, lines: Iterable[str]) -> None:
    """A titled list; nothing where the list is empty."""
    kept = [line for line in lines if line]
    if not kept:
        return
    console.print()
    console.print(text(title, "bold"))
    for line in kept:
        console.print(item("•", line))
