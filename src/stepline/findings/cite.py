"""What several rules say in the same words."""

from stepline import units
from stepline.findings.outcome import RuledOut
from stepline.model.measure.levers import lever_verdicts
from stepline.model.picture.picture import Picture
from stepline.model.signs.per_request_excess import PerRequestCost


def levers_ruled_out(picture: Picture) -> tuple[RuledOut, ...]:
    """What the levers already tried rule out, each by its number."""
    return tuple(
        RuledOut(verdict.acts_on, f"{verdict.by} ({verdict.origin})")
        for verdict in lever_verdicts(picture.run)
    )


def not_bytes(picture: Picture, cost: PerRequestCost) -> tuple[RuledOut, ...]:
    """Why a cost that grows with the batch is neither weights nor, where it is too long for that, KV reads."""
    architecture = picture.target.architecture
    if architecture is not None and architecture.body.experts:
        grants = units.ms(cost.expected_slope_ms or 0.0)
        measured = units.ms(cost.slope_ms)
        by = f"further experts and cache add {grants} a request under uniform routing, {measured} is measured"
        ruled = [RuledOut("expert weight reads", by)]
    else:
        ruled = [RuledOut("weight reads", "they are the same for every batch and cannot grow with it")]
    if cost.beyond_memory:
        part = units.ms(cost.slope_ms * cost.at_running)
        by = f"{part} of a step is longer than reading all memory of {cost.sweep_gpu} ({units.ms(cost.sweep_ms)})"
        ruled.append(RuledOut("KV reads", by))
    return tuple(ruled)
