"""A ledger as the findings document of an optimisation campaign, in Markdown."""

from datetime import UTC, datetime

from stepline import units
from stepline.findings.history import Effect, History
from stepline.report.comparison_text import span
from stepline.report.markdown_text import bullets, plain, table


def to_markdown(history: History) -> str:
    """Summary, the table of levers, what each settled, the runs, and what was left out."""
    lines = ["# What was tried", "", f"{plain(history.sentence)}.", ""]
    head = ["lever", "low batch", "high batch", "verdict", "settles"]
    rows = [
        [
            entry.lever,
            "–" if entry.low is None else _cell(entry.low),
            _cell(entry.high),
            entry.verdict,
            ", ".join([*(c.code for c in entry.confirms), *(f"not {c.code}" for c in entry.rules_out)])
            or "–",
        ]
        for entry in history.entries
    ]
    if rows:
        lines += [*table(head, rows), ""]
    for number, entry in enumerate(history.entries, start=1):
        lines += [
            f"## {number}. {plain(entry.lever)}",
            "",
            f"{plain(entry.before)} → {plain(entry.after)}",
            "",
        ]
        told = [entry.sentence]
        if entry.acts_on is not None:
            told.append(f"acts on {entry.acts_on}")
        told += [f"confirms {cause.code} {cause.name}: {cause.by}" for cause in entry.confirms]
        told += [f"rules out {cause.code} {cause.name}: {cause.by}" for cause in entry.rules_out]
        if entry.binds_next is not None:
            told.append(f"then binds: {entry.binds_next}")
        told += [f"doubt: {doubt.text}" for doubt in entry.doubts]
        lines += [*(f"- {plain(one)}" for one in told), ""]
    lines += bullets("Confirmed", (f"{c.code} {c.name}: {c.by}" for c in history.confirmed))
    lines += bullets("Ruled out", (f"{c.code} {c.name}: {c.by}" for c in history.ruled_out))
    lines += ["## Runs", ""]
    lines += table(
        ["run", "began", "repeats", "what its diagnosis says"],
        [[run.name, _time(run.started_s), run.repeats or "–", run.verdict] for run in history.runs],
    )
    lines += ["", *bullets("Not compared", history.not_compared)]
    return "\n".join(lines).rstrip()


def _cell(effect: Effect) -> str:
    return f"{units.change(effect.speedup)} ({span(effect.interval)}) at {effect.at}"


def _time(seconds: float | None) -> str:
    """A log without a year is read as 1972: only its month and day count."""
    return "–" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%m-%d %H:%M}"
