"""A ledger in a terminal: what was tried, what it did, what that settles. Fits 80 columns."""

from collections.abc import Iterable
from typing import IO

from stepline import units
from stepline.findings.history import CauseSettled, Effect, History
from stepline.report.comparison_terminal import STYLES
from stepline.report.comparison_text import span
from stepline.report.parts import clean, item, section, text


def draw(history: History, stream: IO[str], *, width: int | None = None) -> None:
    """Print the ledger to a stream; colour only on a terminal and without NO_COLOR."""
    from rich.console import Console  # noqa: PLC0415  # 0.1 s that only a report needs

    console = Console(file=stream, width=width, highlight=False, soft_wrap=False, markup=False, emoji=False)
    sentence = clean(history.sentence)
    console.print(text(f"{sentence[:1].upper()}{sentence[1:]}.", "bold"))
    for number, entry in enumerate(history.entries, start=1):
        console.print()
        title = text(f"{number}  {entry.lever}  ", "bold")
        title.append(entry.verdict, STYLES[entry.verdict])
        console.print(title)
        console.print(item("", f"{entry.before} → {entry.after}"))
        for effect in (entry.low, entry.high):
            if effect is not None:
                console.print(item("•", line(effect)))
        if entry.acts_on is not None:
            console.print(item("", f"acts on {entry.acts_on}"))
        for cause in entry.confirms:
            console.print(item("✓", f"{cause.code} {cause.name}"))
        for cause in entry.rules_out:
            console.print(item("✗", f"not {cause.code} {cause.name}"))
        if entry.binds_next is not None:
            console.print(item("→", f"then: {entry.binds_next}"))
    section(console, "Confirmed", _causes(history.confirmed))
    section(console, "Ruled out", _causes(history.ruled_out))
    section(
        console,
        "Repeats",
        (f"{run.name} repeats {run.repeats}" for run in history.runs if run.repeats is not None),
    )
    section(console, "Not compared", history.not_compared)


def line(effect: Effect) -> str:
    """One level: figures, change and interval."""
    figures = f"{units.fmt(effect.before)} → {units.fmt(effect.after)} {effect.unit}"
    return (
        f"{effect.at}: {figures}, {units.change(effect.speedup)} ({span(effect.interval)}), {effect.verdict}"
    )


def _causes(causes: Iterable[CauseSettled]) -> Iterable[str]:
    return (f"{cause.code} {cause.name}: {cause.by}" for cause in causes)
