"""The verdict on a change: two sides, checked for likeness, level by level with intervals, then in one sentence."""

import math
import statistics
from collections.abc import Sequence

from stepline import units
from stepline.errors import Inconclusive
from stepline.findings.comparable import check_comparable, refused
from stepline.findings.comparison import ComparedLine, Comparison, Verdict
from stepline.findings.diagnosis import Doubt
from stepline.findings.knobs import causes_of, changed_knobs
from stepline.findings.promised import binds_next, component_changes, predictions
from stepline.findings.sides import Side, make_side, order_in_time, side_view
from stepline.findings.together import Span
from stepline.model.change.pairs import Pair, Pairs
from stepline.model.change.speedup import Measured, drift, ratio, runs_that_settle
from stepline.model.change.speedup import T as SPEEDUP
from stepline.model.change.step_pairs import step_pairs
from stepline.model.change.throughput_pairs import rate_pairs
from stepline.model.measure.levers import T as LEVERS
from stepline.model.picture.picture import Picture

MARGIN_REASON = "levels repeated on one server differ by up to 2 %"


def compare(
    befores: Sequence[Picture], afters: Sequence[Picture], margin: float = LEVERS.no_change
) -> Comparison:
    """Judge the change from one side's runs to the other's; `margin` (a share) is what counts as none.

    Raises:
        UsageError: when the sides are known to be unlike, or share no level of one instrument.
        Inconclusive: when a side measured neither a step nor a rate.
    """
    return compare_sides(make_side(befores, "BEFORE"), make_side(afters, "AFTER"), margin)


def compare_sides(before: Side, after: Side, margin: float = LEVERS.no_change) -> Comparison:
    """As `compare`, of sides that were put together before."""
    befores, afters = before.pictures, after.pictures
    doubts = check_comparable(befores, afters)
    steps, rates = step_pairs(befores, afters), rate_pairs(befores, afters)
    if rates.other_load is not None:
        raise refused(rates.other_load)
    pairs = (*steps.pairs, *rates.pairs)
    if not pairs:
        raise _nothing_in_common(steps, rates)
    lines = tuple(_line(pair, len(pairs), margin) for pair in pairs)
    verdict, deciding = judge(lines)
    knobs = changed_knobs(before.diagnosis.target, after.diagnosis.target)
    promised = predictions(before, after, causes_of(knobs), pairs)
    accounting, missing = component_changes(before, after)
    codes = [{finding.code for finding in side.diagnosis.findings} for side in (before, after)]
    order = order_in_time(before, after)
    return Comparison(
        verdict=verdict,
        sentence=_sentence(verdict, deciding, lines, margin),
        margin=margin,
        margin_reason=MARGIN_REASON if margin == LEVERS.no_change else "as asked for",
        covers=_covers(before, after, len(lines)),
        more_runs=_more_runs(verdict, lines),
        order=order,
        before=side_view(before),
        after=side_view(after),
        knobs=knobs,
        lines=lines,
        accounting=accounting,
        accounting_missing=missing,
        predictions=promised,
        binds_next=binds_next(before, after, promised),
        gone=tuple(sorted(codes[0] - codes[1])),
        appeared=tuple(sorted(codes[1] - codes[0])),
        stayed=tuple(sorted(codes[0] & codes[1])),
        left_out=(*steps.left_out, *steps.unlike, *rates.left_out, *rates.unlike),
        doubts=(*doubts, *_doubts(steps, rates, lines, order, margin)),
    )


def judge(lines: Sequence[ComparedLine]) -> tuple[Verdict, ComparedLine]:
    """The verdict over all lines, and the line that decides it.

    A line that is better or worse decides; where some are better and others worse the heaviest of them does. The same
    needs every line to say so. Rates come before steps: they are what users get.
    """
    heaviest = sorted(lines, key=lambda line: (line.measure == "rate", line.level), reverse=True)
    moved = [line for line in heaviest if line.verdict in ("better", "worse")]
    if moved:
        return moved[0].verdict, moved[0]
    open_lines = [line for line in heaviest if line.verdict == "inconclusive"]
    if open_lines:
        return "inconclusive", open_lines[0]
    return "same", heaviest[0]


def line_verdict(log_ratio: float, half: float, wide: float, margin: float) -> Verdict:
    """Same within the margin; better or worse only when the interval for all lines at once leaves out no change."""
    limit = math.log1p(margin)
    if abs(log_ratio) + half <= limit:
        return "same"
    if abs(log_ratio) > wide:
        return "better" if log_ratio > 0 else "worse"
    return "inconclusive"


def _line(pair: Pair, lines: int, margin: float) -> ComparedLine:
    found = ratio(pair.before, pair.after, lines)
    middle, wide = found.log_ratio, found.wide
    sign = 1.0 if pair.measure == "rate" else -1.0
    values = [
        math.exp(sign * statistics.fmean(run.log_speed for run in side)) for side in (pair.before, pair.after)
    ]
    verdict = line_verdict(middle, found.half, wide, margin)
    return ComparedLine(
        measure=pair.measure,
        unit="tok/s" if pair.measure == "rate" else "ms",
        instrument=pair.instrument,
        at=pair.name,
        level=pair.level,
        context=pair.context,
        before=values[0],
        after=values[1],
        runs=(len(pair.before), len(pair.after)),
        windows=(_windows(pair.before), _windows(pair.after)),
        speedup=found.speedup,
        interval=Span(found.low, found.high),
        simultaneous=Span(math.exp(middle - wide), math.exp(middle + wide)),
        verdict=verdict,
        drift=(drift(pair.before), drift(pair.after)),
        runs_to_settle=runs_that_settle(pair.before, pair.after, lines, margin),
    )  # fmt: skip


def _windows(side: Sequence[Measured]) -> int:
    return sum(run.windows for run in side)


def _nothing_in_common(steps: Pairs, rates: Pairs) -> Exception:
    unlike = (*steps.unlike, *rates.unlike)
    if unlike:
        return refused(unlike[0])
    ours, theirs = ([*s, *r] for s, r in zip(steps.instruments, rates.instruments, strict=True))
    if ours and theirs and not set(ours) & set(theirs):
        return refused(f"before has {ours[0]} and after has {theirs[0]}, two instruments")
    return Inconclusive(
        "no level was measured on both sides: give logs with decode lines or client results of one load"
    )


def _sentence(verdict: Verdict, line: ComparedLine, lines: Sequence[ComparedLine], margin: float) -> str:
    where = f"at {line.at} ({_instrument(line)})"
    if verdict == "same":
        least, most = min(x.interval.low for x in lines), max(x.interval.high for x in lines)
        span = _span(Span(least, most))
        return f"the same within {units.percent(margin)}: {span} over {len(lines)} levels"
    span = _span(line.interval)
    if verdict == "inconclusive":
        return f"inconclusive: {where} the change is {units.change(line.speedup)}, anywhere from {span}"
    text = f"{verdict}: {units.change(line.speedup)} {where}, 95 % {span}"
    others = [x for x in lines if x.verdict in ("better", "worse") and x.verdict != verdict]
    if others:
        worst = max(others, key=lambda x: abs(math.log(x.speedup)))
        text += f"; but {worst.verdict} at {worst.at} ({units.change(worst.speedup)})"
    return text


def _span(interval: Span) -> str:
    return f"{units.change(interval.low)} to {units.change(interval.high)}"


def _instrument(line: ComparedLine) -> str:
    return "closed-loop rate" if line.measure == "rate" else line.instrument.split(" (")[0]


def _covers(before: Side, after: Side, lines: int) -> str:
    counts = (len(before.pictures), len(after.pictures))
    start = f"{units.percent(SPEEDUP.run_spread)} between starts of a sound server (H200 pairs)"
    if max(counts) == 1:
        text = (
            f"one run a side: no repeat was seen, so the interval takes {start} on trust and adds what these runs' "
            "own windows scatter beyond a sound server's"
        )
    else:
        text = (
            f"{counts[0]} and {counts[1]} runs: the interval covers what they differ by, starting from {start}; "
            "windows of one run count as one value"
        )
    return f"{text}; better and worse hold for all {lines} levels at once"


def _more_runs(verdict: Verdict, lines: Sequence[ComparedLine]) -> int | None:
    if verdict != "inconclusive":
        return None
    needed = [
        None if line.runs_to_settle is None else line.runs_to_settle - min(line.runs)
        for line in lines
        if line.verdict == "inconclusive"
    ]
    known = [runs for runs in needed if runs is not None]
    return max(known) if len(known) == len(needed) else None


def _doubts(
    steps: Pairs, rates: Pairs, lines: Sequence[ComparedLine], order: str | None, margin: float
) -> list[Doubt]:
    doubts = [Doubt(topic="load", text=text) for text in (*steps.doubts, *rates.doubts)]
    drifts = [
        (abs(d), line, side)
        for line in lines
        for d, side in zip(line.drift, ("BEFORE", "AFTER"), strict=True)
        if d is not None
    ]
    worst = max(drifts, key=lambda one: one[0], default=None)
    if worst is not None and worst[0] > margin:
        doubts.append(
            Doubt(
                topic="drift",
                text=f"{worst[2]}'s last run differs from its first by {units.percent(worst[0])} at {worst[1].at}",
            )
        )
    if (
        order is not None
        and len(order) > 2
        and len(set(order)) == 2
        and order == "".join(sorted(order, reverse=order[0] == "B"))
    ):
        doubts.append(
            Doubt(
                topic="order",
                text=f"runs were made in the order {order}: a drift of the machine reads as an effect; ABBA cancels it",
            )
        )
    return doubts  # fmt: skip
