"""The diagnosis in a terminal: the first screen answers, the rest backs it. Reads well at 80 columns."""

import re
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING

from stepline import units
from stepline.findings.diagnosis import Diagnosis, Finding, LawView, StepView

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Server text may carry escape sequences; none of them reaches the terminal."""
STATUS_STYLE = {"confirmed": "bold red", "suspected": "bold yellow"}


def draw(diagnosis: Diagnosis, stream: IO[str], *, width: int | None = None) -> None:
    """Print the whole report to a stream; colour only on a terminal and without NO_COLOR."""
    from rich.console import Console  # noqa: PLC0415  # 0.1 s that only a report needs

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
    _section(console, "Evidence", _evidence(diagnosis))


def _head(console: "Console", diagnosis: Diagnosis) -> None:
    target = diagnosis.target
    layout = " ".join(f"{name.upper()}{size}" for name, size in target.layout.items() if size > 1)
    server = " ".join(part for part in (target.engine, target.version) if part)
    parts = [
        server or "engine not known",
        target.model or "model not known",
        target.gpu or "GPU not known",
        layout,
    ]
    console.print(_text(" · ".join(part for part in parts if part), "dim"))
    console.print()
    top = diagnosis.findings[0] if diagnosis.findings else None
    style = STATUS_STYLE[top.status] if top else "bold"
    sentence = _clean(diagnosis.verdict)
    console.print(_text(sentence[:1].upper() + sentence[1:] + ".", style))
    console.print()


def _facts(console: "Console", diagnosis: Diagnosis) -> None:
    from rich.table import Table  # noqa: PLC0415

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    for label, content in _fact_lines(diagnosis):
        grid.add_row(label, _text(content))
    console.print(grid)


def _fact_lines(diagnosis: Diagnosis) -> Iterable[tuple[str, str]]:
    load, step = diagnosis.load, diagnosis.step
    if load is not None:
        offered = f"{load.concurrency:g} streams offered, " if load.concurrency is not None else ""
        queued = "queue not known" if load.queued is None else f"{load.queued:g} queued"
        rate = "" if load.tok_s is None else f", {units.tok_s(load.tok_s)}"
        yield "Load", f"{offered}{load.running:.3g} running, {queued}{rate}"
    if step is not None:
        yield "Step", _step_line(step)
        yield "Law", _law_line(step.law)
        if step.law.points:
            yield "", _points_line(step.law)
    phases = diagnosis.phases
    if phases.decode is not None and phases.queue is not None and phases.prefill is not None:
        parts = (("queue", phases.queue), ("prefill", phases.prefill), ("decode", phases.decode))
        times = " · ".join(f"{name} {units.ms(value)}" for name, value in parts)
        yield "Request", f"{times} → {phases.worst} hurts most"
    if diagnosis.life:
        yield "Time", " · ".join(f"{line.part} {units.percent(line.share or 0)}" for line in diagnosis.life)
    broken = "; ".join(f"{line.text}{_at(line.source)}" for line in diagnosis.health)
    yield "Health", broken or "slow, not broken: no retraction, failure or restart seen"


def _step_line(step: StepView) -> str:
    line = f"{units.ms(step.measured_ms)} at {step.running:g} running ({step.instrument})"
    floor = step.floor
    if floor is None:
        return f"{line} · floor not known"
    least = floor.strict_ms if floor.used == "strict" else floor.expected_ms
    context = "" if step.context is None else f" at {step.context:,.0f} live tokens"
    return (
        f"{line} · floor {units.ms(least)} ({floor.used}{context}) · {units.times(step.gap or 0)} the floor"
    )


def _law_line(law: LawView) -> str:
    if law.refused is not None:
        return f"none: {law.refused}"
    per_request = law.per_request_ms or 0
    slope = f"{'-' if per_request < 0 else '+'} {units.fmt(abs(per_request))}"
    if law.interval is not None and law.per_request_ms is not None:
        slope += f" ± {units.fmt(law.interval.high - law.per_request_ms, 2)}"
    ceiling = "" if law.ceiling_tok_s is None else f" · ceiling {units.tok_s(law.ceiling_tok_s)}"
    expected = ""
    if law.expected_per_request_ms is not None:
        expected = f" · floor grows {units.ms(law.expected_per_request_ms)} a request"
    return f"step = {units.fmt(law.fixed_ms or 0)} {slope} N ms{ceiling}{expected}"


def _points_line(law: LawView) -> str:
    points = [f"{point.running:g}→{units.fmt(point.step_ms)} ({point.windows})" for point in law.points[:12]]
    return f"running→ms (windows): {' '.join(points)}"


def _finding(console: "Console", number: int, finding: Finding) -> None:
    console.print()
    title = _text(f"{number}  {finding.code} {finding.name}  ", "bold")
    title.append(finding.status, STATUS_STYLE[finding.status])
    if finding.recoverable_tok_s is not None:
        title.append(f"  +{units.tok_s(finding.recoverable_tok_s)}")
    console.print(title)
    if finding.status == "suspected" or number > 1:
        console.print(_item("", finding.headline))
    for line in finding.evidence:
        console.print(_item("•", f"{line.text}{_at(line.source)}"))
    for ruled in finding.ruled_out:
        console.print(_item("✗", f"not {ruled.rival}: {ruled.by}"))
    for rival in finding.rivals:
        console.print(_item("?", f"or {rival.rival}; decided by {rival.decided_by}"))
    if finding.gain is not None:
        console.print(_item("→", f"then binds: {finding.gain.binds_next}"))
    for attempt in finding.tries:
        console.print(_item("try", f"{attempt.action} (costs: {attempt.cost})"))
    if finding.proof is not None:
        cost = "" if finding.proof.cost_s is None else f" (about {finding.proof.cost_s:.0f} s of server time)"
        console.print(_item("prove", f"{finding.proof.command}{cost}"))


def _section(console: "Console", title: str, lines: Iterable[str]) -> None:
    kept = [line for line in lines if line]
    if not kept:
        return
    console.print()
    console.print(_text(title, "bold"))
    for line in kept:
        console.print(_item("•", line))


def _evidence(diagnosis: Diagnosis) -> Iterable[str]:
    provenance = diagnosis.provenance
    yield "read " + ", ".join(provenance.read)
    if provenance.window is not None:
        yield provenance.window
    if diagnosis.step is not None:
        yield f"disturbance: {diagnosis.step.disturbance}"
    yield from provenance.passed_over


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


def _at(source: str | None) -> str:
    return "" if source is None else f" [{source}]"


def _text(content: str, style: str = "") -> "Text":
    from rich.text import Text  # noqa: PLC0415

    return Text(_clean(content), style=style)


def _clean(content: str) -> str:
    return _CONTROL.sub("", content)
