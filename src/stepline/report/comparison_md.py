"""A comparison as Markdown, for a comment on a pull request."""

from stepline import units
from stepline.findings.comparison import Comparison
from stepline.report.comparison_text import component, drifts, groups, knob, needed, predicted, span
from stepline.report.markdown_text import bullets, plain, table

MARKS = {"better": "🟢", "worse": "🔴", "same": "⚪", "inconclusive": "🟡"}


def to_markdown(result: Comparison) -> str:
    """The verdict, the levels, what changed, promises and doubts; nothing of a server's text is active."""
    sentence = plain(result.sentence)
    lines = [f"### {MARKS[result.verdict]} stepline: {sentence}", ""]
    more = needed(result)
    if more is not None:
        lines += [more, ""]
    for title, levels in groups(result):
        drifting = any(drifts(line) for line in levels)
        head = [
            plain(title),
            "before",
            "after",
            "change",
            "95 %",
            "verdict",
            *(["drift"] if drifting else []),
        ]
        rows = [
            [
                line.at,
                units.fmt(line.before),
                units.fmt(line.after),
                units.change(line.speedup),
                span(line.interval),
                line.verdict,
                *([drifts(line)] if drifting else []),
            ]
            for line in levels
        ]
        lines += [*table(head, rows), ""]
    lines += bullets("Changed", (knob(one) for one in result.knobs))
    lines += bullets("Predicted and measured", (predicted(one) for one in result.predictions))
    lines += [f"Binds now: {plain(result.binds_next.measured)}", ""]
    if result.accounting:
        rows = [list(component(one)) for one in result.accounting]
        head = ["step by component, ms", "before", "after", "change"]
        lines += [
            "<details><summary>Step by component</summary>",
            "",
            *table(head, rows),
            "",
            "</details>",
            "",
        ]
    lines += bullets("Left out", result.left_out)
    lines += bullets("Doubts", (doubt.text for doubt in result.doubts))
    lines.append(f"<sub>95 %: {plain(result.covers)}. Same: within {units.percent(result.margin)}.</sub>")
    return "\n".join(lines)
