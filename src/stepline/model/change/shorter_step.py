"""What the rate would be with shorter decode steps, by what goes away in them."""

import math

import msgspec

from stepline.model.change.estimate import Estimate
from stepline.model.change.gain import Gain, gain
from stepline.model.change.loop_rates import loop_at_load, rates, told
from stepline.model.measure.law import Interval, law_or_none
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.measure.traced_step import TracedStep
from stepline.model.picture.picture import Picture, Step
from stepline.model.picture.sign import sign
from stepline.model.signs.per_request_excess import PerRequestCost
from stepline.model.signs.recompute import own_prompt_floor_ms
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    growth = Threshold(
        0.005,
        "share of the fixed part a request",
        why="What a sound step grows by for each further request.",
        source="0.54 % on the healthy H200 capture (1 to 64 running), 0.8 % on the capture with the "
        "founding fault removed (1 to 32)",
    )
    between_kernels = Threshold(
        0.1,
        "share of kernel time",
        why="Time of a step that lies between its kernels, and goes with them.",
        source="6 to 10 % of layers in plain PyTorch on an H200",
    )
    fixed = Threshold(
        0.1,
        "share of the fixed part",
        why="Its interval, where a law of two points has none.",
    )


def with_step(picture: Picture, step_ms: Estimate, binds_next: str) -> Gain | None:
    """The rate with a step of `step_ms` at the present batch; None without a true step."""
    loop = loop_at_load(picture)
    return None if loop is None else gain(rates(loop, step_ms), told(picture, binds_next))


def with_decode_work(picture: Picture, step_ms: Estimate, binds_next: str) -> Gain | None:
    """The rate without work done per decoded token; None without a true step.

    Engines that compute prompts and answers in one mixed batch do that work beside every chunk of a prompt too: there
    the upper bound has it gone from prefill as well.
    """
    plain, loop, server = with_step(picture, step_ms, binds_next), picture.loop, picture.run.server
    budget, load = server.chunked_prefill_tokens, picture.load
    if plain is None or loop is None or server.graph_mode is None or budget is None:
        return plain
    if load is None or load.input_tokens is None:
        return plain
    floor = own_prompt_floor_ms(picture) or 0.0
    saved_ms = math.ceil(load.input_tokens / budget.value) * (loop.step_ms - step_ms.low)
    other = max(min(loop.other_ms_per_request, floor), loop.other_ms_per_request - saved_ms)
    fast = msgspec.structs.replace(loop, step_ms=step_ms.low, other_ms_per_request=other)
    return msgspec.structs.replace(plain, high=fast.tok_s)


def without_work(picture: Picture, work_ms: float) -> Gain | None:
    """The rate without kernels that take `work_ms` of the load's step, half of them left at the slow end.

    None without a step that is more than an upper bound.
    """
    step = picture.step
    if step is None or step.upper_bound:
        return None
    now = step.measured_ms
    least = max(
        now - (1 + T.between_kernels) * work_ms,
        0.0 if picture.floors is None else picture.floors.here.total_ms,
    )
    steps = Estimate(max(least, now - work_ms), least, max(least, now - work_ms / 2))
    return with_step(picture, steps, "the rest of the step")


def without_drafts(picture: Picture) -> Gain | None:
    """The rate of plain decoding at the same batch: steps as healthy servers of the GPU's class take them.

    The ends are those that four of five such servers lie between, and never beyond the floor or the present step.
    Pauses of the drafts lie beside the steps too: that time stays at the slow end, is what prompts ordinarily take at
    the fast one, and between the two (their geometric mean) in the middle. None without a true step or a typical one.
    """
    loop, floors = loop_at_load(picture), picture.floors
    if loop is None or floors is None or floors.typical is None:
        return None
    typical, other = floors.typical, loop.other_ms_per_request
    prompt_ms = own_prompt_floor_ms(picture)
    least = other if prompt_ms is None else min(other, SHARED.prompt_over_floor * prompt_ms)
    steps = Estimate(typical.ms, max(floors.here.total_ms, typical.low_ms), typical.high_ms)
    others = Estimate(math.sqrt(other * least), least, other)
    plain = msgspec.structs.replace(loop, tokens_per_step=1.0)
    return gain(rates(plain, steps.at_most(loop.step_ms), others), told(picture, "plain decoding"))


@sign
def traced_batch_step(picture: Picture) -> Step | None:
    """The measured step where it has the batch of the traced one: what a trace saves can be taken from no other."""
    step, traced = picture.step, picture.traced
    return step if step is not None and traced is not None and step.running == traced.group.batch else None


def saved_at_load(
    picture: Picture, traced: TracedStep, saved_ms: float, *, all_growth: bool = False
) -> tuple[float, float]:
    """(least, most) ms by which the step at the load shrinks when a traced one shrinks by `saved_ms`.

    At the traced batch they are one number. At another the part that goes may have stayed as long or have grown with
    the step, and the truth lies between: data and products grow with the batch, latencies and weights do not. Without
    an unprofiled step at the traced batch its GPU work stands in, as the profiler stretches the rest. With `all_growth`
    most is what the part would be if nothing else had grown with the batch, as where it moves data over a slow link.
    """
    step = picture.step
    if step is None:
        return saved_ms, saved_ms
    whole_ms = traced.group.busy_ms if traced.wall_ms is None else traced.wall_ms
    constant, in_proportion = saved_ms, saved_ms / whole_ms * step.measured_ms
    if all_growth and step.measured_ms > whole_ms:
        return constant, saved_ms + step.measured_ms - whole_ms
    return min(constant, in_proportion), max(constant, in_proportion)


def with_launches(picture: Picture, step_ms: Estimate, binds_next: str, *, prompts_too: bool) -> Gain | None:
    """The rate without launch overhead, of which the upper bound relieves prefill too; None without a true step.

    Where prefill surely is relieved (`prompts_too`), the time beside decode steps shrinks by the square root of the
    step's own gain, in proportion to it at the fast end: from twins with and without any graphs on an H200 (SGLang
    three times, vLLM, an expert model) it went by powers of 0.22 to 0.80 of that gain, 0.50 in the middle.
    """
    loop = loop_at_load(picture)
    if loop is None:
        return None
    other, shrinks = loop.other_ms_per_request, min(1.0, step_ms.middle / loop.step_ms)
    half = math.sqrt(shrinks)
    others = (
        Estimate(other * half, other * shrinks, other)
        if prompts_too
        else Estimate(other, other * half, other)
    )
    return gain(rates(loop, step_ms, others), told(picture, binds_next))


def with_clean_step(picture: Picture, step_ms: Estimate, binds_next: str) -> Gain | None:
    """The rate without launch overhead, with steps that hold no prefill; None without a true step.

    If the time beside decode steps is below the prefill floor, prefill is hidden inside the measured steps, and takes
    time of its own afterwards: from the floor (mixed batches) to an ordinary prompt's time (batches of prefill alone),
    halfway in the middle.
    """
    loop, floor = picture.loop, own_prompt_floor_ms(picture)
    plain = with_launches(picture, step_ms, binds_next, prompts_too=False)
    if plain is None or loop is None or floor is None or loop.other_ms_per_request >= floor:
        return plain
    over = Estimate((1 + SHARED.prompt_over_floor) / 2, 1.0, SHARED.prompt_over_floor)
    return gain(rates(loop, step_ms, over.times(floor)).at_least(loop.tok_s), plain.binds_next)


def with_exchange(picture: Picture, step_ms: Estimate, binds_next: str) -> Gain | None:
    """The rate without what slows prefill too (exchange, a late rank, wide weights); None without a true step.

    At the slow end the time beside decode steps stays as it is. Else it shrinks as the step does, or to an ordinary
    prompt's where that is less, to the prompt's floor at the fast end: prompts move more data than steps and are bound
    by products. On a pair of H200 servers of two GPUs, all-reduce over sockets and over NVLink, the step went from 18.8
    to 3.87 ms and the rate from 1,323 to 5,719 tok/s, where the step alone gives 3,255 and shrinking as the step 5,728.
    """
    loop, floor = loop_at_load(picture), own_prompt_floor_ms(picture)
    if loop is None:
        return None
    other = loop.other_ms_per_request

    def shrunk(step: float, over: float) -> float:
        return min(other * step / loop.step_ms, math.inf if floor is None else over * floor)

    others = Estimate(shrunk(step_ms.middle, SHARED.prompt_over_floor), shrunk(step_ms.low, 1.0), other)
    return gain(rates(loop, step_ms, others), told(picture, binds_next))


def without_excess(picture: Picture, cost: PerRequestCost) -> Gain | None:
    """The rate when each request costs only what the roofline grants it; None without a law or a floor.

    The fixed part of the law stays and grows with the batch as on sound servers. The slow end takes the upper
    interval of the fixed part, twice the ordinary growth and four times the granted bytes (a kernel at a quarter
    of datasheet bandwidth); the fast end the lower interval, no growth and the bytes alone.
    """
    law = law_or_none(picture.law)
    if law is None or cost.granted_slope_ms is None or picture.floors is None:
        return None
    running, granted = cost.at_running, max(0.0, cost.granted_slope_ms)
    fixed = law.fixed_interval or Interval((1 - T.fixed) * law.fixed_ms, (1 + T.fixed) * law.fixed_ms)
    steps = Estimate(
        law.fixed_ms * (1 + T.growth * running) + 2 * granted * running,
        fixed.low + granted * running,
        fixed.high * (1 + 2 * T.growth * running) + 4 * granted * running,
    )
    bounded = steps.at_least(picture.floors.here.total_ms).at_most(law.step_ms(running))
    return with_step(picture, bounded, "the fixed part of the step (weights, launches, host)")
