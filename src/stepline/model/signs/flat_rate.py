"""A rate that does not rise with the load, by client levels or stated batches alone: no model, GPU or log is needed.

A decode step reads the weights once for the whole batch, so the second request costs nearly nothing. Where four times
the requests bring no more tokens a second, each costs what the first does, or they wait for each other.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import sign
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    gains_nothing = Threshold(
        1.25,
        "times the rate at the lightest load",
        why="Up to this best rate nothing is gained by more requests.",
        source="of the undisturbed H200 recordings in tests/data that begin with one stream each gains 2.6 times or "
        "more by eight streams, that of the founding fault 3.0",
    )
    loads = Threshold(3, "loads", why="Two may both be at the limit of something else.")
    spread = Threshold(4.0, "times the lightest load", why="A narrower range of loads does not tell it.")
    light = Threshold(
        4.0, "streams", why="At more streams a compute-bound server may be at its limit from the start."
    )
    decodes = Threshold(
        0.25,
        "answer over prompt tokens",
        why="Below, prompts and not decode steps may take the time.",
    )
    as_fast = Threshold(
        0.5,
        "of the growth of the load",
        why="Streams whose time per token grows by less decode about as fast as one: the others wait.",
    )


class FlatRate(NamedTuple):
    """The lightest and the heaviest load, and the rates there."""

    light: float
    heavy: float
    light_tok_s: float
    heavy_tok_s: float
    of_batches: bool
    """True for stated running batches, of which none waits."""


@sign
def flat_rate(picture: Picture) -> FlatRate | None:
    """The rate that nothing gains; None where it rises, or where queues or prompts may explain it."""
    stated = [(row.running, row.tok_s) for row in picture.run.step_rows if row.tok_s]
    if stated and len({row.context_tokens for row in picture.run.step_rows}) == 1:
        return _flat(stated, of_batches=True)
    levels = [level for level in picture.levels if level.tok_s and level.disturbed is None]
    if any(
        level.input_tokens and level.output_tokens and level.output_tokens < T.decodes * level.input_tokens
        for level in levels
    ):
        return None
    found = _flat([(level.concurrency, level.tok_s or 0.0) for level in levels], of_batches=False)
    times = {level.concurrency: level.tpot_ms for level in levels if level.tpot_ms}
    if found is not None and found.light in times and found.heavy in times:
        grown = (times[found.heavy] or 0.0) / (times[found.light] or 1.0)
        if grown < T.as_fast * found.heavy / found.light:
            return None  # streams decode about as fast as one: the others wait
    return found


def _flat(points: Sequence[tuple[float, float]], *, of_batches: bool) -> FlatRate | None:
    best: dict[float, float] = {}
    for load, rate in points:
        best[load] = max(rate, best.get(load, 0.0))
    if len(best) < T.loads:
        return None
    light, heavy = min(best), max(best)
    if light > T.light or heavy < T.spread * light:
        return None
    if any(rate > T.gains_nothing * best[light] for rate in best.values()):
        return None
    return FlatRate(light, heavy, best[light], best[heavy], of_batches)
