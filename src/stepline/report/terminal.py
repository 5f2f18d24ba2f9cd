"""The diagnosis in a terminal: the first screen answers, the rest backs it. Reads well at 80 columns."""

from typing import IO, TYPE_CHECKING

from stepline import units
from stepline.findings.diagnosis import Diagnosis, Finding, LawView, RunDiagnosis
from stepline.report import lines, runs
from stepline.report.bounded import bounded
from stepline.report.parts import item, section, text

if TYPE_CHECKING:
    from rich.console import Console

STATUS_STYLE = {"confirmed": "bold red", "suspected": "bold yellow"}
_BARS = "▁▂▃▄▅▆▇█"


def draw(diagnosis: Diagnosis | RunDiagnosis, stream: IO[str], *, width: int | None = None) -> None:
    """Print the whole report to a stream; colour only on a terminal and without NO_COLOR."""
    from rich.console import Console  # noqa: PLC0415  # 0.1 s that only a report needs

    diagnosis = bounded(diagnosis)
    console = Console(file=stream, width=width, highlight=False, soft_wrap=False, markup=False, emoji=False)
    if isinstance(diagnosis, RunDiagnosis):
        _run(console, diagnosis)
        return
    if len(diagnosis.runs) > 1:
        _table(console, diagnosis)
    _run(console, diagnosis.chosen)
    section(console, "Comparisons", runs.experiments(diagnosis))
    section(console, "Repeats", runs.repeats(diagnosis))
    section(console, "Not comparable", runs.apart(diagnosis))
    section(console, "In no run", runs.ungrouped(diagnosis))


def _table(console: "Console", diagnosis: Diagnosis) -> None:
    """The runs beside each other, and what two of them say together: it stands before the diagnosis of one."""
    from rich.table import Table  # noqa: PLC0415

    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for head in runs.HEADS:
        grid.add_column(head, style="bold" if head == "run" else None, overflow="fold")
    for row in runs.rows(diagnosis):
        grid.add_row(*(text(cell) for cell in row))
    console.print(grid)
    if len(diagnosis.runs) > runs.MOST:
        console.print(text(f"and {len(diagnosis.runs) - runs.MOST} more, in the JSON", "dim"))
    section(console, "What differs", runs.differing(diagnosis))
    if said := runs.foremost(diagnosis):
        console.print()
        console.print(text(said, "bold"))
    console.print()
    console.print(text(runs.chosen(diagnosis), "dim"))
    console.print()


def _run(console: "Console", diagnosis: RunDiagnosis) -> None:
    _head(console, diagnosis)
    _facts(console, diagnosis)
    for number, finding in enumerate(diagnosis.findings, start=1):
        _finding(console, number, finding)
    section(console, "Notes", (line.text for line in diagnosis.notes))
    section(
        console,
        "Cannot tell",
        (f"{gap.code} {gap.name}: needs {gap.needs}. {_how(gap.command)}" for gap in diagnosis.cannot_tell),
    )
    section(console, "Clear", (f"{one.code} {one.name}: {one.reason}" for one in diagnosis.clear))
    section(console, "Doubts", (doubt.text for doubt in diagnosis.doubts))
    section(console, "Evidence", lines.evidence(diagnosis))


def _head(console: "Console", diagnosis: RunDiagnosis) -> None:
    console.print(text(lines.target_line(diagnosis), "dim"))
    console.print()
    top = diagnosis.findings[0] if diagnosis.findings else None
    console.print(text(lines.sentence(diagnosis.verdict), STATUS_STYLE[top.status] if top else "bold"))
    console.print()


def _facts(console: "Console", diagnosis: RunDiagnosis) -> None:
    from rich.table import Table  # noqa: PLC0415

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    for label, content in lines.facts(diagnosis):
        grid.add_row(label, text(content))
        if label == "Law" and diagnosis.step is not None and diagnosis.step.law.points:
            grid.add_row("", text(_points_line(diagnosis.step.law)))
    console.print(grid)


def _points_line(law: LawView) -> str:
    shown = law.points[:12]
    points = " ".join(
        f"{units.batch(point.running)}→{units.fmt(point.step_ms)} ({point.windows})" for point in shown
    )
    drawn = f"{sparkline([point.step_ms for point in shown])} " if len(shown) > 2 else ""
    return f"{drawn}N→ms (windows): {points}"


def sparkline(values: list[float]) -> str:
    """One bar a value, as tall as its share of the largest: a flat law looks flat."""
    largest = max(values)
    return "".join(_BARS[max(0, round(8 * value / largest) - 1)] for value in values) if largest > 0 else ""


def _finding(console: "Console", number: int, finding: Finding) -> None:
    """What to do comes before why: it must be on the first screen."""
    console.print()
    title = text(f"{number}  {finding.code} {finding.name}  ", "bold")
    title.append(finding.status, STATUS_STYLE[finding.status])
    title.append(f"  {lines.worth(finding)}")
    console.print(title)
    if number > 1:
        console.print(item("", finding.headline))
    for attempt in finding.tries:
        console.print(item("try", f"{attempt.action} (costs: {attempt.cost})"))
    if finding.proof is not None:
        console.print(item("prove", lines.proof_line(finding.proof)))
    for line in finding.evidence:
        console.print(item("•", f"{line.text}{lines.at(line.source)}"))
    for ruled in finding.ruled_out:
        console.print(item("✗", f"not {ruled.rival}: {ruled.by}"))
    for rival in finding.rivals:
        console.print(item("?", f"or {rival.rival}; decided by {rival.decided_by}"))
    if finding.gain is not None:
        console.print(item("→", f"then binds: {finding.gain.binds_next}"))


def _how(command: str) -> str:
    return f"How: {command}" if command else ""
