"""A comparison in a terminal: the verdict first, then what backs it. Fits 80 columns."""

from collections.abc import Iterable
from typing import IO, TYPE_CHECKING

from stepline import units
from stepline.findings.comparison import ComparedLine, Comparison
from stepline.report.comparison_text import component, drifts, groups, knob, needed, predicted, span
from stepline.report.parts import clean, item, section, text

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {"better": "bold green", "worse": "bold red", "same": "bold", "inconclusive": "bold yellow"}


def draw(result: Comparison, stream: IO[str], *, width: int | None = None) -> None:
    """Print the comparison to a stream; colour only on a terminal and without NO_COLOR."""
    from rich.console import Console  # noqa: PLC0415  # 0.1 s that only a report needs

    console = Console(file=stream, width=width, highlight=False, soft_wrap=False, markup=False, emoji=False)
    console.print(text(_server(result), "dim"))
    console.print()
    sentence = clean(result.sentence)
    console.print(text(f"{sentence[:1].upper()}{sentence[1:]}.", STYLES[result.verdict]))
    more = needed(result)
    if more is not None:
        console.print(text(more))
    for title, lines in groups(result):
        console.print()
        console.print(text(title, "bold"))
        _levels(console, lines)
    console.print()
    console.print(item("95 %", result.covers))
    console.print(item("same", f"within {units.percent(result.margin)}: {result.margin_reason}"))
    section(console, "Changed", [knob(one) for one in result.knobs] or ["no setting that the evidence shows"])
    section(console, "Predicted and measured", _promises(result))
    _accounting(console, result)
    section(console, "Left out", result.left_out)
    section(console, "Doubts", (doubt.text for doubt in result.doubts))


def _server(result: Comparison) -> str:
    target = result.before.target
    engine = " ".join(part for part in (target.engine, target.version) if part)
    before, after = len(result.before.runs), len(result.after.runs)
    runs = f"{before} {'run' if before == 1 else 'runs'} before, {after} after"
    order = "" if result.order is None or len(result.order) < 3 else f" (in time {result.order})"
    parts = (
        engine or "engine not known",
        target.model or "model not known",
        target.gpu or "GPU not known",
        runs,
    )
    return " · ".join(parts) + order


def _levels(console: "Console", lines: Iterable[ComparedLine]) -> None:
    from rich.table import Table  # noqa: PLC0415

    table = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "right", "right", "left", "left"):
        table.add_column(justify=justify, no_wrap=True)
    told = list(lines)
    drifting = any(drifts(line) for line in told)
    table.add_row("", "before", "after", "change", "95 %", "", *(("drift",) if drifting else ()), style="dim")
    for line in told:
        table.add_row(
            text(f"  {line.at}"),
            units.fmt(line.before),
            units.fmt(line.after),
            units.change(line.speedup),
            span(line.interval),
            text(line.verdict, STYLES[line.verdict]),
            *((drifts(line),) if drifting else ()),
        )
    console.print(table)


def _promises(result: Comparison) -> Iterable[str]:
    yield from (predicted(one) for one in result.predictions)
    if result.binds_next.predicted is not None:
        yield f"then binds, as predicted: {result.binds_next.predicted}"
    yield f"now binds, as measured after: {result.binds_next.measured}"
    for what, codes in (("gone", result.gone), ("new", result.appeared), ("still there", result.stayed)):
        if codes:
            yield f"{what}: {', '.join(codes)}"


def _accounting(console: "Console", result: Comparison) -> None:
    from rich.table import Table  # noqa: PLC0415

    if result.accounting_missing is not None:
        section(console, "Step by component", [f"not set side by side: {result.accounting_missing}"])
        return
    console.print()
    console.print(text("Step by component, ms (GPU busy in the traces)", "bold"))
    table = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "right", "right"):
        table.add_column(justify=justify, no_wrap=True)
    table.add_row("", "before", "after", "change", style="dim")
    for one in result.accounting:
        name, *cells = component(one)
        table.add_row(text(f"  {name}"), *cells)
    console.print(table)
