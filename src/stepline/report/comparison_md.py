"""A comparison as Markdown, for a comment on a pull request."""

import re
from collections.abc import Iterable, Sequence

from stepline import units
from stepline.findings.comparison import Comparison
from stepline.report.comparison_text import component, drifts, groups, knob, needed, predicted, span

MARKS = {"better": "🟢", "worse": "🔴", "same": "⚪", "inconclusive": "🟡"}
_ACTIVE = re.compile(r"([\\`*_{}\[\]<>#|!@~$&])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def to_markdown(result: Comparison) -> str:
    """The verdict, the levels, what changed, promises and doubts; nothing of a server's text is active."""
    sentence = _plain(result.sentence)
    lines = [f"### {MARKS[result.verdict]} stepline: {sentence}", ""]
    more = needed(result)
    if more is not None:
        lines += [more, ""]
    for title, levels in groups(result):
        drifting = any(drifts(line) for line in levels)
        head = [
            _plain(title),
            "before",
            "after",
            "change",
            "95 %",
            "verdict",
            *(["drift"] if drifting else []),
        ]
        rows = [
            [
                _plain(line.at),
                units.fmt(line.before),
                units.fmt(line.after),
                units.change(line.speedup),
                span(line.interval),
                line.verdict,
                *([drifts(line)] if drifting else []),
            ]
            for line in levels
        ]
        lines += [*_table(head, rows), ""]
    lines += _list("Changed", (knob(one) for one in result.knobs))
    lines += _list("Predicted and measured", (predicted(one) for one in result.predictions))
    lines += [f"Binds now: {_plain(result.binds_next.measured)}", ""]
    if result.accounting:
        rows = [list(component(one)) for one in result.accounting]
        head = ["step by component, ms", "before", "after", "change"]
        lines += [
            "<details><summary>Step by component</summary>",
            "",
            *_table(head, rows),
            "",
            "</details>",
            "",
        ]
    lines += _list("Left out", result.left_out)
    lines += _list("Doubts", (doubt.text for doubt in result.doubts))
    lines.append(f"<sub>95 %: {_plain(result.covers)}. Same: within {units.percent(result.margin)}.</sub>")
    return "\n".join(lines)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    ruler = ["---", *("---:" for _ in head[1:])]
    return [
        f"| {' | '.join(cells)} |" for cells in (head, ruler, *([_plain(row[0]), *row[1:]] for row in rows))
    ]


def _list(title: str, entries: Iterable[str]) -> list[str]:
    told = [f"- {_plain(entry)}" for entry in entries]
    return [f"**{title}**", "", *told, ""] if told else []


def _plain(content: str) -> str:
    """Text of a server without control characters, its Markdown and HTML signs escaped."""
    return _ACTIVE.sub(r"\\\1", _CONTROL.sub(" ", content)).replace("\\<", "&lt;").replace("\\>", "&gt;")
