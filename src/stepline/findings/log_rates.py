"""Rates that two engines' logs print over fixed times, at running batches that both saw.

A line over a fixed time holds prefill and ramps, so it bounds no step; beside lines of the same engine at the same
batch it still tells which server makes more tokens. Used where neither steps nor a client's rates were measured on both
sides.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence

from stepline.findings.compare import line_verdict
from stepline.findings.diagnosis import Compared, Span
from stepline.model.change.speedup import Measured, from_windows, ratio
from stepline.model.picture.picture import Picture

INSTRUMENT = "generation throughput over fixed times (log)"
COVERS = (
    "rates over fixed times of a log, prefill of both sides inside: the interval takes 0.60 % between starts of a "
    "sound server on trust and adds what the lines of each side scatter"
)
ONE_LINE = 1.5
"""A single line may hold half a ramp, so a side with one tells only a change beyond that."""
LITTLE_PREFILL = 0.05
"""Prompt tokens computed beside each generated one from which a line is one of prefill."""


def log_rates(befores: Sequence[Picture], afters: Sequence[Picture], margin: float) -> tuple[Compared, ...]:
    """The change at every running batch that both sides' lines show, the lightest first."""
    sides = [_by_batch(side) for side in (befores, afters)]
    common = sorted(set(sides[0]) & set(sides[1]))
    return tuple(
        _compared(running, sides[0][running], sides[1][running], len(common), margin) for running in common
    )


def _by_batch(pictures: Sequence[Picture]) -> dict[int, list[float]]:
    """Rates by running batch; a batch whose lines are all of prefill keeps those, for both sides may have no other."""
    quiet: dict[int, list[float]] = defaultdict(list)
    every: dict[int, list[float]] = defaultdict(list)
    for picture in pictures:
        for line in picture.run.decodes:
            if line.instrument == "interval" and line.running and line.tok_s and not line.queued:
                every[line.running].append(line.tok_s)
                if (line.prefill_tok_s or 0.0) <= LITTLE_PREFILL * line.tok_s:
                    quiet[line.running].append(line.tok_s)
    return {running: quiet.get(running) or rates for running, rates in every.items()}


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
