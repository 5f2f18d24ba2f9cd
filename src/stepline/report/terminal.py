"""The diagnosis in a terminal: the first screen answers, the rest backs it. Reads well at 80 columns."""

from collections.abc import Iterable
from typing import IO, TYPE_CHECKING

from stepline import units
from stepline.findings.diagnosis import Diagnosis, Finding, LawView
from stepline.report import lines
from stepline.report.bounded import bounded

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

STATUS_STYLE = {"confirmed": "bold red", "suspected": "bold yellow"}
_BARS = "▁▂▃▄▅▆▇█"


def draw(diagnosis: Diagnosis, stream: IO[str], *, width: int | None = None) -> None:
    """Print the whole report to a stream; colour only on a terminal and without NO_COLOR."""
    from rich.console import Console  # noqa: PLC0415  # 0.1 s that only a report needs

    diagnosis = bounded(diagnosis)
    console = Console(file=stream, width=width, highlight=False, soft_wrap=False, markup=False, emoji=False)
    _head(console, diagnosis)
    _facts(console, diagnosis)
    for number, finding in enumerate(diagnosis.findings, start=1):
        _finding(console, number, finding)
    _section(console, "Notes", (line.text for line in diagnosis.notes))
    _section(
        console,
        "Cannot tell",
        (f"{gap.code} {gap.name}: needs {gap.needs}. {_how(gap.command)}" for gap in diagnosis.cannot_tell),
    )
    _section(console, "Clear", (f"{item.code} {item.name}: {item.reason}" for item in diagnosis.clear))
    _section(console, "Doubts", (doubt.text for doubt in diagnosis.doubts))
    _section(console, "Evidence", lines.evidence(diagnosis))


def _head(console: "Console", diagnosis: Diagnosis) -> None:
    console.print(_text(lines.target_line(diagnosis), "dim"))
    console.print()
    top = diagnosis.findings[0] if diagnosis.findings else None
    console.print(_text(lines.sentence(diagnosis.verdict), STATUS_STYLE[top.status] if top else "bold"))
    console.print()


def _facts(console: "Console", diagnosis: Diagnosis) -> None:
    from rich.table import Table  # noqa: PLC0415

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    for label, content in lines.facts(diagnosis):
        grid.add_row(label, _text(content))
        if label == "Law" and diagnosis.step is not None and diagnosis.step.law.points:
            grid.add_row("", _text(_points_line(diagnosis.step.law)))
    console.print(grid)


def _points_line(law: LawView) -> str:
    shown = law.points[:12]
    points = " ".join(f"{point.running:g}→{units.fmt(point.step_ms)} ({point.windows})" for point in shown)
    drawn = f"{sparkline([point.step_ms for point in shown])} " if len(shown) > 2 else ""
    return f"{drawn}N→ms (windows): {points}"


def sparkline(values: list[float]) -> str:
    """One bar a value, as tall as its share of the largest: a flat law looks flat."""
    largest = max(values)
    return "".join(_BARS[max(0, round(8 * value / largest) - 1)] for value in values) if largest > 0 else ""


def _finding(console: "Console", number: int, finding: Finding) -> None:
    """What to do comes before why: it must be on the first screen."""
    console.print()
    title = _text(f"{number}  {finding.code} {finding.name}  ", "bold")
    title.append(finding.status, STATUS_STYLE[finding.status])
    title.append(f"  {lines.worth(finding)}")
    console.print(title)
    if number > 1:
        console.print(_item("", finding.headline))
    for attempt in finding.tries:
        console.print(_item("try", f"{attempt.action} (costs: {attempt.cost})"))
    if finding.proof is not None:
        console.print(_item("prove", lines.proof_line(finding.proof)))
    for line in finding.evidence:
        console.print(_item("•", f"{line.text}{lines.at(line.source)}"))
    for ruled in finding.ruled_out:
        console.print(_item("✗", f"not {ruled.rival}: {ruled.by}"))
    for rival in finding.rivals:
        console.print(_item("?", f"or {rival.rival}; decided by {rival.decided_by}"))
    if finding.gain is not None:
        console.print(_item("→", f"then binds: {finding.gain.binds_next}"))


def _section(console: "Console", title: str, sentences: Iterable[str]) -> None:
    kept = [line for line in sentences if line]
    if not kept:
        return
    console.print()
    console.print(_text(title, "bold"))
    for line in kept:
        console.print(_item("•", line))


def _item(mark: str, content: str) -> object:
    from rich.padding import Padding  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="dim", no_wrap=True, min_width=1)
    grid.add_column()
    grid.add_row(mark, _text(content))
    return Padding(grid, (0, 0, 0, 3))


def _how(command: str) -> str:
    return f"How: {command}" if command else ""


def _text(content: str, style: str = "") -> "Text":
    from rich.text import Text  # noqa: PLC0415

    return Text(content, style=style)
