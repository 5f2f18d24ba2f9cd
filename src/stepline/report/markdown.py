"""The diagnosis as Markdown to paste into a GitHub issue: nothing in it is read as markup, a mention or a reference."""

from collections.abc import Iterable, Sequence

from stepline import units
from stepline.findings.diagnosis import Diagnosis, Finding, RunDiagnosis
from stepline.report import lines, runs
from stepline.report.bounded import bounded
from stepline.report.markdown_text import code, plain

LONGEST = 60_000
"""GitHub takes 65,536 characters."""


def markdown(diagnosis: Diagnosis | RunDiagnosis) -> str:
    """The report, at most `LONGEST` characters; sections that do not fit are left out whole and named."""
    whole = bounded(diagnosis)
    diagnosis = whole if isinstance(whole, RunDiagnosis) else whole.chosen
    together = [] if isinstance(whole, RunDiagnosis) else _together(whole)
    parts = [*together, _head(diagnosis), *(_finding(n, one) for n, one in enumerate(diagnosis.findings, 1))]
    parts += [_folded(title, list(body)) for title, body in _sections(diagnosis)]
    text, left_out = "", 0
    for part in parts:
        if len(text) + len(part) > LONGEST:
            left_out += 1
        else:
            text += part
    return text if not left_out else f"{text}\n{left_out} sections were too long for an issue.\n"


def _together(whole: Diagnosis) -> list[str]:
    """The runs beside each other, before the one that the rest speaks of."""
    apart = _folded(
        "Not comparable, and in no run",
        [f"- {plain(line)}" for said in (runs.repeats, runs.apart, runs.ungrouped) for line in said(whole)],
    )
    if len(whole.runs) == 1:
        return [apart] if apart else []
    table = _table(runs.HEADS, (tuple(map(plain, row)) for row in runs.rows(whole)))
    said = [f"- {plain(line)}" for line in runs.experiments(whole)]
    foremost = runs.foremost(whole)
    differs = [f"- {plain(line)}" for line in runs.differing(whole)]
    parts = [
        *table,
        "",
        *([f"**{plain(foremost)}**", ""] if foremost else []),
        *said,
        "",
        plain(runs.chosen(whole)),
        "",
    ]
    return ["\n".join(parts) + "\n", _folded("What differs between the runs", differs), apart]


def _head(diagnosis: RunDiagnosis) -> str:
    said = [
        f"### {plain(lines.sentence(diagnosis.verdict))}",
        "",
        plain(lines.target_line(diagnosis)),
        "",
        *_table(("", ""), ((f"**{label}**", plain(content)) for label, content in lines.facts(diagnosis))),
    ]
    if diagnosis.findings:
        rows = (
            (f"{one.code} {one.name}", one.status, lines.worth(one), _next(one)) for one in diagnosis.findings
        )
        said += ["", *_table(("finding", "status", "recoverable", "next"), rows)]
    return "\n".join(said) + "\n"


def _next(finding: Finding) -> str:
    return plain(finding.tries[0].action) if finding.tries else "–"


def _finding(number: int, finding: Finding) -> str:
    said = ["", f"#### {number}. {finding.code} {finding.name} ({finding.status})", ""]
    if number > 1:
        said += [plain(lines.sentence(finding.headline)), ""]
    said += [f"- {_cited(line.text, line.source)}" for line in finding.evidence]
    said += [f"- not {plain(ruled.rival)}: {plain(ruled.by)}" for ruled in finding.ruled_out]
    said += [f"- or {plain(rival.rival)}; decided by {plain(rival.decided_by)}" for rival in finding.rivals]
    if finding.gain is not None:
        said.append(f"- then binds: {plain(finding.gain.binds_next)}")
    said += [f"- **try** {plain(one.action)} (costs: {plain(one.cost)})" for one in finding.tries]
    if finding.proof is not None:
        said.append(f"- **prove** {plain(lines.proof_line(finding.proof))}")
    return "\n".join(said) + "\n"


def _sections(diagnosis: RunDiagnosis) -> Iterable[tuple[str, Iterable[str]]]:
    yield "Notes", (f"- {_cited(note.text, note.source)}" for note in diagnosis.notes)
    yield "A decode step, part by part", _accounting(diagnosis)
    yield "Step law", _law(diagnosis)
    yield (
        "Cannot tell",
        (
            f"- {gap.code} {gap.name}: needs {plain(gap.needs)}. How: {plain(gap.command)}"
            for gap in diagnosis.cannot_tell
        ),
    )
    yield "Clear", (f"- {one.code} {one.name}: {plain(one.reason)}" for one in diagnosis.clear)
    yield "Doubts", (f"- {plain(doubt.text)}" for doubt in diagnosis.doubts)
    yield "Levers tried", _levers(diagnosis)
    yield (
        "Settings in force",
        (f"- {knob.name}: {plain(knob.value)} {code(knob.source)}" for knob in diagnosis.target.knobs),
    )
    yield "Evidence", (f"- {plain(line)}" for line in lines.evidence(diagnosis))


def _accounting(diagnosis: RunDiagnosis) -> Iterable[str]:
    rows = [
        (plain(line.component), _ms(line.measured_ms), _ms(line.floor_ms), plain(line.evidence))
        for line in diagnosis.accounting
    ]
    return _table(("part", "measured", "floor", "evidence"), rows) if rows else ()


def _law(diagnosis: RunDiagnosis) -> Iterable[str]:
    law = None if diagnosis.step is None else diagnosis.step.law
    if law is None or not law.points:
        return ()
    rows = ((units.batch(point.running), units.ms(point.step_ms), str(point.windows)) for point in law.points)
    return _table(("running", "step", "windows"), rows)


def _levers(diagnosis: RunDiagnosis) -> Iterable[str]:
    rows = [
        (
            plain(one.lever),
            f"{one.running or one.concurrency or 0:g}",
            f"{units.fmt(one.before)} {one.unit}",
            f"{units.fmt(one.after)} {one.unit}",
            units.times(one.speedup),
        )
        for one in diagnosis.levers
    ]
    return _table(("lever", "at", "before", "after", "times as fast"), rows) if rows else ()


def _folded(title: str, body: list[str]) -> str:
    """A section that a reader opens; empty without content."""
    if not body:
        return ""
    return "\n".join(["", f"<details><summary>{title}</summary>", "", *body, "", "</details>", ""])


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_row(heads), _row(["---"] * len(heads)), *(_row(row) for row in rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cited(text: str, source: str | None) -> str:
    return plain(text) if source is None else f"{plain(text)} {code(source)}"


def _ms(value: float | None) -> str:
    return "–" if value is None else units.ms(value)
