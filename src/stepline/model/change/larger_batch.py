"""What the rate would be if more requests decoded together."""

import msgspec

from stepline.model.change.estimate import Estimate
from stepline.model.change.gain import Gain, gain
from stepline.model.change.loop_rates import loop_at_load, rates, told
from stepline.model.measure.closed_loop import ClosedLoop
from stepline.model.measure.law import StepLaw, law_or_none
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture, Step
from stepline.model.signs.cached_prompts import cached_share
from stepline.model.signs.recompute import prompt_floor_ms
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    binds = Threshold(
        0.75,
        "decode's share of the time",
        why="Below it prefill and admission are named as what binds next.",
    )


def step_at_larger_batch(picture: Picture, running: float) -> Estimate | None:
    """Step in ms at a batch beyond those measured; None for a smaller batch or where nothing tells the growth.

    Low: a larger batch is never faster than the present one. Middle: the measured growth per request goes on,
    but at least that of the floor. High: twice that growth, for what no point measured (another attention or GEMM
    regime, the next graph size). With experts growth does not go on: once a batch touches all of them, further requests
    read none. There the step keeps its ratio to the floor.
    """
    step = picture.step
    if step is None or running < step.running:
        return None
    more = _growth_with_experts(picture, step, running)
    if more is None:
        law = law_or_none(picture.law)
        growth = 0.0 if law is None else max(0.0, law.per_request_ms)
        if picture.floors is not None:
            growth = max(growth, picture.floors.per_request_ms)
        more = growth * (running - step.running)
    if more == 0.0:
        return None
    return Estimate(step.measured_ms + more, step.measured_ms, step.measured_ms + 2 * more)


def _growth_with_experts(picture: Picture, step: Step, running: float) -> float | None:
    """What the step grows by up to `running`, in proportion to the floor; None for models without experts."""
    architecture = picture.target.architecture
    if architecture is None or not architecture.body.experts:
        return None
    now, then = picture.floor_at(step.running, "expected"), picture.floor_at(running, "expected")
    if now is None or then is None or now.total_ms <= 0:
        return None
    return step.measured_ms * (then.total_ms / now.total_ms - 1)


def step_on_law(picture: Picture, law: StepLaw, running: float) -> float:
    """The step that measured batches foretell for a larger one.

    With experts no line does: between 1 and 16 sequences each reads further experts, beyond that hardly any. Where no
    law that levels off was found (it takes three batches) the largest measured step keeps its ratio to the floor.
    """
    if law.saturation is not None:
        return law.step_ms(running)
    last = law.points[-1]
    architecture = picture.target.architecture
    if running > last.running and architecture is not None and architecture.body.experts:
        now, then = picture.floor_at(last.running, "expected"), picture.floor_at(running, "expected")
        if now is not None and then is not None and now.total_ms > 0:
            return min(law.step_ms(running), last.step_ms * then.total_ms / now.total_ms)
    return law.step_ms(running)


def with_larger_batch(picture: Picture, running: float, *, pool: bool = False) -> Gain | None:
    """The rate when `running` sequences decode together instead of the present batch; None without a true step.

    A request keeps its cost beside decode steps. With `pool`, where the KV pool held the batch back, that cost was
    measured on an unstable batch: the middle is the mean of the measured cost and an ordinary prompt's, the bounds are
    the prefill floor and the larger of both. A cost below the prefill floor comes of a batch read a little too small:
    then the middle is the floor, and the slow end an ordinary prompt's cost.
    """
    loop, steps = loop_at_load(picture), step_at_larger_batch(picture, running)
    if loop is None or steps is None:
        return None
    other = loop.other_ms_per_request
    others = Estimate.exact(other)
    floor = _fresh_prompt_floor_ms(picture)
    if pool and floor is not None and picture.loop is not None:
        middle = (other + SHARED.prompt_over_floor * floor) / 2
        others = Estimate(middle, min(other, floor), max(other, middle))
    elif floor is not None and picture.loop is not None and other < floor:
        others = Estimate(floor, other, SHARED.prompt_over_floor * floor)
    larger = msgspec.structs.replace(loop, running=running)
    central = msgspec.structs.replace(larger, step_ms=steps.middle, other_ms_per_request=others.middle)
    return gain(rates(larger, steps, others), told(picture, _binds_next(picture, central)))


def _fresh_prompt_floor_ms(picture: Picture) -> float | None:
    """The floor of what the prefix cache leaves of a prompt."""
    tokens = None if picture.load is None else picture.load.input_tokens
    cached, _ = cached_share(picture)
    return prompt_floor_ms(picture, None if tokens is None else max(1.0, tokens * (1 - (cached or 0.0))))


def _binds_next(picture: Picture, after: ClosedLoop) -> str:
    sizes = picture.run.server.decode_graph_sizes
    share = after.decode_share
    parts = []
    if share < T.binds:
        parts.append(f"prefill and admission, {100 * (1 - share):.0f} % of the time")
    if sizes is not None and after.running > max(sizes.value):
        parts.append(f"decode graphs, captured up to {max(sizes.value)} so far")
    parts.append(f"the offered load of {after.running:g}")
    return "; then ".join(parts)
