"""The words of a comparison that terminal and Markdown share. Formatting only."""

from collections.abc import Iterable

from stepline import units
from stepline.findings.comparison import ComparedLine, Comparison, ComponentChange, KnobChange, PredictedView
from stepline.findings.together import Span


def span(interval: Span) -> str:
    """An interval of ratios."""
    return f"{units.change(interval.low)} to {units.change(interval.high)}"


def groups(result: Comparison) -> Iterable[tuple[str, list[ComparedLine]]]:
    """Lines by measure and instrument, each group with its heading."""
    seen: dict[str, list[ComparedLine]] = {}
    for line in result.lines:
        title = "Rate of the closed loop, tok/s" if line.measure == "rate" else "Time per token, ms"
        seen.setdefault(f"{title}: {line.instrument}", []).append(line)
    return seen.items()


def needed(result: Comparison) -> str | None:
    """How many more runs would settle an inconclusive verdict."""
    if result.verdict != "inconclusive":
        return None
    effect = units.percent(result.margin)
    if result.more_runs is None:
        return f"Over 100 runs a side would be needed to see {effect}: steady the server first, or make longer runs."
    return f"{result.more_runs} more runs a side would settle a change of {effect}."


def knob(one: KnobChange) -> str:
    """A setting before and after, and what it acts on."""
    acts = "" if one.acts_on is None else f" (acts on {one.acts_on})"
    return f"{one.name}: {short(one.before)} → {short(one.after)}{acts}"


def short(value: str | None) -> str:
    """A value that fits a line."""
    if value is None:
        return "not known"
    return value if len(value) <= 40 else f"{value[:18]} … {value[-18:]}"


def predicted(one: PredictedView) -> str:
    """A promise beside what came."""
    figure = units.ms if one.unit == "ms" else units.tok_s
    within = (
        "" if one.interval is None else f" ({units.fmt(one.interval.low)} to {units.fmt(one.interval.high)})"
    )
    came = "not measured after" if one.measured is None else f"measured {figure(one.measured)}"
    held = {True: ", as promised", False: ", outside the interval", None: ""}[one.inside]
    what = f"{one.code} {one.name} ({one.because}), {one.measure.removeprefix('tok/s of ')}"
    return f"{what}: predicted {figure(one.predicted)}{within}, {came}{held}"


def component(one: ComponentChange) -> tuple[str, str, str, str]:
    """A row: component, before, after, change in ms a step."""
    before, after = ("–" if value is None else units.fmt(value) for value in (one.before_ms, one.after_ms))
    return one.component, before, after, f"{one.change_ms:+.3f}"


def drifts(line: ComparedLine) -> str:
    """The drift within the sides, where a side has several runs."""
    told = [
        f"{side} {100 * value:+.1f} %" for side, value in zip("AB", line.drift, strict=True) if value is not None
    ]  # fmt: skip
    return ", ".join(told)
