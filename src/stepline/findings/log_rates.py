"""Rates that two engines' logs print over fixed times, at running batches that both saw.

A line over a fixed time holds prefill and ramps, so it bounds no step; beside lines of the same engine at the same
batch it still tells which server makes more tokens. Used where neither steps nor a client's rates were measured on both
sides.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence

from stepline.evidence.scheduler import DecodeReport
from stepline.findings.compare import line_verdict
from stepline.findings.together import Compared, Span
from stepline.model.change.speedup import Measured, from_windows, ratio
from stepline.model.picture.picture import Picture

INSTRUMENT = "generation throughput over fixed times (log)"
COVERS = (
    "rates over fixed times of a log, prefill of both sides inside: the interval takes 0.60 % between starts of a "
    "sound server on trust and adds what the lines of each side scatter"
)
ONE_LINE = 1.5
"""A single line may hold half a ramp, so a side with one tells only a change beyond that."""
SAME_USE = 1.5
LEAST_USE = 0.002
"""Logs print the use of the pool in steps of 0.1 %."""
LITTLE_PREFILL = 0.05
"""Prompt tokens computed beside each generated one from which a line is one of prefill."""


def log_rates(befores: Sequence[Picture], afters: Sequence[Picture], margin: float) -> tuple[Compared, ...]:
    """The change at every running batch that both sides held at one context, the lightest first.

    The KV pool's use stands for the context, which no line prints: where a side does not tell it, or the two differ,
    nobody knows that the loads are one.
    """
    sides = [_by_batch(side) for side in (befores, afters)]
    common = [n for n in sorted(set(sides[0]) & set(sides[1])) if _same_use(sides[0][n], sides[1][n])]
    made = []
    for running in common:
        before, after = (_rates(side[running]) for side in sides)
        made.append(_compared(running, before, after, len(common), margin))
    return tuple(made)


def unlike_contexts(befores: Sequence[Picture], afters: Sequence[Picture]) -> bool:
    """True where both sides are logs over fixed times alone and no batch that both held has one use of the pool."""
    pictures = (*befores, *afters)
    if any(picture.run.levels for picture in pictures):
        return False  # a client tells the lengths
    if not all(any(line.instrument == "interval" for line in picture.run.decodes) for picture in pictures):
        return False
    sides = [_by_batch(side) for side in (befores, afters)]
    return not any(_same_use(sides[0][n], sides[1][n]) for n in set(sides[0]) & set(sides[1]))


def _by_batch(pictures: Sequence[Picture]) -> dict[int, list[DecodeReport]]:
    """Lines at the batches that a log held for a while, not those met in passing."""
    found: dict[int, list[DecodeReport]] = defaultdict(list)
    held = {round(plateau.running) for picture in pictures for plateau in picture.plateaus}
    for picture in pictures:
        for line in picture.run.decodes:
            if line.instrument == "interval" and line.running in held and line.tok_s and not line.queued:
                found[line.running].append(line)
    return found


def _rates(lines: list[DecodeReport]) -> list[float]:
    """Without lines of prefill, where there are others: both sides may have no other."""
    rated = [(line.tok_s or 0.0, line.prefill_tok_s or 0.0) for line in lines]
    return [rate for rate, prefill in rated if prefill <= LITTLE_PREFILL * rate] or [
        rate for rate, _ in rated
    ]


def _same_use(before: list[DecodeReport], after: list[DecodeReport]) -> bool:
    uses = [[line.pool_usage for line in side if line.pool_usage is not None] for side in (before, after)]
    if not all(uses):
        return False
    low, high = sorted(statistics.median(use) for use in uses)
    return high - low <= LEAST_USE or high <= SAME_USE * low


def _compared(running: int, before: list[float], after: list[float], lines: int, margin: float) -> Compared:
    found = ratio(_measured(before), _measured(after), lines)
    alone = math.log(ONE_LINE) if min(len(before), len(after)) == 1 else 0.0
    half, wide = found.half + alone, found.wide + alone
    return Compared(
        at=f"{running:g} running",
        measure="rate",
        instrument=INSTRUMENT,
        before=statistics.median(before),
        after=statistics.median(after),
        unit="tok/s",
        speedup=found.speedup,
        interval=Span(math.exp(found.log_ratio - half), math.exp(found.log_ratio + half)),
        verdict=line_verdict(found.log_ratio, half, wide, margin),
    )


def _measured(rates: list[float]) -> list[Measured]:
    return [from_windows([1000 / rate for rate in rates])]
