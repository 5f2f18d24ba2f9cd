"""The question that rules about a cost per request share: does the step grow with the batch beyond its floor?"""

from stepline import units
from stepline.findings.outcome import CannotTell, Clear
from stepline.model.measure.instruments import Instrument
from stepline.model.measure.law import NoLaw, StepLaw
from stepline.model.picture.picture import Picture
from stepline.model.signs.front_end import both_sides
from stepline.model.signs.host import gpu_busy
from stepline.model.signs.per_request_excess import PerRequestCost, per_request_cost
from stepline.model.signs.per_request_excess import T as EXCESS
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    mostly_idle = Threshold(
        0.5,
        "busy share of the GPU",
        why="Below it most of a step passes without the GPU, so that no kernel can be most of its growth.",
    )


def roofline_excess(picture: Picture) -> tuple[StepLaw, PerRequestCost] | CannotTell | Clear:
    """The law and the cost per request that bytes do not explain; else the answer that says why there is none."""
    if isinstance(picture.law, NoLaw):
        return CannotTell(f"a step law: {picture.law.reason}", "drive several batches and save the log")
    if picture.step is not None and picture.step.upper_bound:
        return CannotTell(
            "steps free of prefill: these are means over a longer time", "save decode lines or a trace"
        )
    if any(window.speculative for window in picture.windows.usable):
        return CannotTell(
            "what a step without drafts grows by: each request brings all its drafts to verify",
            "measure with speculation off, or take a trace",
        )
    if picture.law.instrument == Instrument.CLIENT_GAP and any(
        side.tokens_late for side in both_sides(picture)
    ):
        return CannotTell(
            "the engine's own steps: the client's gaps hold what delays tokens on their way (H304)",
            "save decode lines over the same load",
        )
    busy = gpu_busy(picture)
    if busy is not None and busy.share < T.mostly_idle:
        return Clear(
            f"the GPU idles {units.percent(1 - busy.share)} of the time ({busy.instrument}): "
            "what the step grows by is no work of its kernels"
        )
    cost = per_request_cost(picture)
    if cost is None or not cost.dominant:
        share = 0.0 if cost is None else cost.share
        return Clear(f"the per-request part is {units.percent(share)} of the step at the load")
    if cost.ratio is not None and cost.ratio < EXCESS.above_roofline:
        return Clear(
            f"the cost per request is {units.times(cost.ratio)} what the floor grants: bytes explain it"
        )
    if cost.ratio is None and not cost.beyond_memory:
        return CannotTell("the roofline's slope: model and GPU", "give --gpu and the model's config.json")
    return picture.law, cost
