"""What the rate would be after a change: the closed loop with another batch or step, as an interval."""

import math

import msgspec

from stepline.model.measure.closed_loop import ClosedLoop, decode_only
from stepline.model.measure.law import Interval, StepLaw, law_or_none
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.measure.traced_step import TracedStep
from stepline.model.picture.picture import Picture, Step
from stepline.model.picture.sign import sign
from stepline.model.signs.cached_prompts import cached_share
from stepline.model.signs.per_request_excess import PerRequestCost
from stepline.model.signs.recompute import own_prompt_floor_ms, prompt_floor_ms
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
    regained = Threshold(
        0.5,
        "share of the GPU's idle time",
        why="What goes with the cause of the host's delay; the host binds again soon after.",
        source="88 % on the SGLang twins with and without overlap scheduling, 38 and 26 % on vLLM's "
        "(tests/data/h200-sglang-2, h200-lab)",
    )
    regained_least = Threshold(
        0.25,
        "share of the GPU's idle time",
        why="The same at the slow end.",
        source="the smaller of vLLM's twins, 26 %",
    )
    overlapped = Threshold(
        0.88,
        "share of the GPU's idle time",
        why="The same where the engine says that host and GPU take turns, and the host's part is "
        "short enough to hide behind the GPU's.",
        source="the SGLang twins, of which the first idled 25 % of the time, the others 46 % and more",
    )
    hides = Threshold(
        1 / 3,
        "idle share of the GPU",
        why="Up to here the host's turn is at most half of the GPU's.",
        source="arithmetic",
    )
    counted = Threshold(
        0.02,
        "busy share",
        why="How far a counted one may lie above the truth.",
        source="healthy servers read up to 98 to 99 % and samples of one load differ by as much",
    )
    busy_least = Threshold(
        0.5,
        "share of the counted busy share",
        why="Bound on the fast end: counters are not wrong by more than half.",
    )
    fixed = Threshold(
        0.1,
        "share of the fixed part",
        why="Its interval, where a law of two points has none.",
    )
    binds = Threshold(
        0.75,
        "decode's share of the time",
        why="Below it prefill and admission are named as what binds next.",
    )


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """A rate after a change, with its interval and what limits it."""

    tok_s: float
    low: float
    high: float
    binds_next: str


@sign
def loop_at_load(picture: Picture) -> ClosedLoop | None:
    """The measured closed loop, endless decoding where no client level was measured, None without a true step."""
    if picture.loop is not None:
        return picture.loop
    if picture.step is None or picture.step.upper_bound:
        return None
    return decode_only(picture.step.running, picture.step.measured_ms, picture.step.tokens_per_step)


def step_at_larger_batch(picture: Picture, running: float) -> tuple[float, float, float] | None:
    """(central, low, high) step in ms at a batch beyond those measured.

    Low: a larger batch is never faster than the present one. Central: the measured growth per request goes on,
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
    return step.measured_ms + more, step.measured_ms, step.measured_ms + 2 * more


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


def with_larger_batch(picture: Picture, running: float, *, pool: bool = False) -> Prediction | None:
    """The rate when `running` sequences decode together instead of the present batch.

    What a request costs beside decode steps stays. Where the KV `pool` held the batch back that cost is in doubt, since
    a batch that empties and fills all the time is read too large or too small: it is taken halfway to an ordinary
    prompt's, and as the prompt's floor or the larger of both at the ends. Less than its floor no prompt takes, though a
    batch read a little too small says so: then it is the floor, and an ordinary prompt's at the slow end.
    """
    loop, steps = loop_at_load(picture), step_at_larger_batch(picture, running)
    if loop is None or steps is None:
        return None
    other = loop.other_ms_per_request
    others = (other, other, other)
    floor = _fresh_prompt_floor_ms(picture)
    if pool and floor is not None and picture.loop is not None:
        middle = (other + SHARED.prompt_over_floor * floor) / 2
        others = (middle, min(other, floor), max(other, middle))
    elif floor is not None and picture.loop is not None and other < floor:
        others = (floor, other, SHARED.prompt_over_floor * floor)
    central, fast, slow = (
        msgspec.structs.replace(loop, running=running, step_ms=step_ms, other_ms_per_request=other_ms)
        for step_ms, other_ms in zip(steps, others, strict=True)
    )
    return Prediction(
        tok_s=central.tok_s,
        low=slow.tok_s,
        high=fast.tok_s,
        binds_next=_told(picture, _binds_next(picture, central)),
    )


def _fresh_prompt_floor_ms(picture: Picture) -> float | None:
    """The floor of what the prefix cache leaves of a prompt."""
    tokens = None if picture.load is None else picture.load.input_tokens
    cached, _ = cached_share(picture)
    return prompt_floor_ms(picture, None if tokens is None else max(1.0, tokens * (1 - (cached or 0.0))))


def with_step(
    picture: Picture, step_ms: float, low_ms: float, high_ms: float, binds_next: str
) -> Prediction | None:
    """The rate when a step takes `step_ms` (between `low_ms` and `high_ms`) at the present batch."""
    loop = loop_at_load(picture)
    if loop is None:
        return None
    central, fast, slow = (
        msgspec.structs.replace(loop, step_ms=value) for value in (step_ms, low_ms, high_ms)
    )
    return Prediction(
        tok_s=central.tok_s, low=slow.tok_s, high=fast.tok_s, binds_next=_told(picture, binds_next)
    )


def with_decode_work(
    picture: Picture, step_ms: float, low_ms: float, high_ms: float, binds_next: str
) -> Prediction | None:
    """As `with_step`, when the part of a step that goes away is the answers' own work.

    Engines that compute prompts and answers in one forward do that work beside every piece of a prompt too; there it
    goes at the fast end.
    """
    plain, loop, server = (
        with_step(picture, step_ms, low_ms, high_ms, binds_next),
        picture.loop,
        picture.run.server,
    )
    budget, load = server.chunked_prefill_tokens, picture.load
    if plain is None or loop is None or server.graph_mode is None or budget is None:
        return plain
    if load is None or load.input_tokens is None:
        return plain
    floor = own_prompt_floor_ms(picture) or 0.0
    saved_ms = math.ceil(load.input_tokens / budget.value) * (loop.step_ms - low_ms)
    other = max(min(loop.other_ms_per_request, floor), loop.other_ms_per_request - saved_ms)
    fast = msgspec.structs.replace(loop, step_ms=low_ms, other_ms_per_request=other)
    return msgspec.structs.replace(plain, high=fast.tok_s)


def without_work(picture: Picture, work_ms: float) -> Prediction | None:
    """The rate without kernels that take `work_ms` of the load's step, half of them left at the slow end."""
    step = picture.step
    if step is None or step.upper_bound:
        return None
    now = step.measured_ms
    least = max(
        now - (1 + T.between_kernels) * work_ms,
        0.0 if picture.floors is None else picture.floors.here.total_ms,
    )
    return with_step(
        picture, max(least, now - work_ms), least, max(least, now - work_ms / 2), "the rest of the step"
    )


def without_drafts(picture: Picture) -> Prediction | None:
    """The rate of plain decoding at the same batch: steps as healthy servers of the GPU's class take them.

    The ends are those that four of five such servers lie between, and never beyond the floor or the present step.
    Pauses of the drafts lie beside the steps too: that time stays at the slow end, is what prompts ordinarily take at
    the fast one, and between the two (their geometric mean) in the middle.
    """
    loop, floors = loop_at_load(picture), picture.floors
    if loop is None or floors is None or floors.typical is None:
        return None
    typical, other = floors.typical, loop.other_ms_per_request
    prompt_ms = own_prompt_floor_ms(picture)
    least = other if prompt_ms is None else min(other, SHARED.prompt_over_floor * prompt_ms)
    central, fast, slow = (
        msgspec.structs.replace(
            loop, step_ms=min(loop.step_ms, step_ms), other_ms_per_request=other_ms, tokens_per_step=1.0
        )
        for step_ms, other_ms in (
            (typical.ms, math.sqrt(other * least)),
            (max(floors.here.total_ms, typical.low_ms), least),
            (typical.high_ms, other),
        )
    )
    return Prediction(
        tok_s=central.tok_s, low=slow.tok_s, high=fast.tok_s, binds_next=_told(picture, "plain decoding")
    )


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


def with_launches(
    picture: Picture, step_ms: float, low_ms: float, high_ms: float, binds_next: str, *, prompts_too: bool
) -> Prediction | None:
    """As `with_step`, when what goes away delays launches: at the fast end those of prefill too.

    Where it surely does (`prompts_too`), the time beside decode steps shrinks by the square root of the step's own
    gain, in proportion to it at the fast end: from twins with and without any graphs on an H200 (SGLang three times,
    vLLM, an expert model) it went by powers of 0.22 to 0.80 of that gain, 0.50 in the middle.
    """
    plain, loop = with_step(picture, step_ms, low_ms, high_ms, binds_next), loop_at_load(picture)
    if plain is None or loop is None:
        return None
    other, gain = loop.other_ms_per_request, min(1.0, step_ms / loop.step_ms)
    middle = msgspec.structs.replace(
        loop, step_ms=step_ms, other_ms_per_request=other * math.sqrt(gain) if prompts_too else other
    )
    fast = msgspec.structs.replace(
        loop, step_ms=low_ms, other_ms_per_request=other * (gain if prompts_too else math.sqrt(gain))
    )
    return msgspec.structs.replace(plain, tok_s=middle.tok_s, high=fast.tok_s)


def with_clean_step(
    picture: Picture, step_ms: float, low_ms: float, high_ms: float, binds_next: str
) -> Prediction | None:
    """As `with_launches`, to a step that holds no prompts.

    Less than a prompt's floor cannot lie beside the present steps: then prompts are inside them and come out of them.
    They take as long as an engine takes that mixes them into steps (the floor) to one that does not (an ordinary
    prompt's time), in the middle halfway.
    """
    loop, floor = picture.loop, own_prompt_floor_ms(picture)
    plain = with_launches(picture, step_ms, low_ms, high_ms, binds_next, prompts_too=False)
    if plain is None or loop is None or floor is None or loop.other_ms_per_request >= floor:
        return plain
    central, fast, slow = (
        max(loop.tok_s, msgspec.structs.replace(loop, step_ms=value, other_ms_per_request=over * floor).tok_s)
        for value, over in (
            (step_ms, (1 + SHARED.prompt_over_floor) / 2),
            (low_ms, 1.0),
            (high_ms, SHARED.prompt_over_floor),
        )
    )
    return msgspec.structs.replace(plain, tok_s=central, low=slow, high=fast)


def with_exchange(
    picture: Picture, step_ms: float, low_ms: float, high_ms: float, binds_next: str
) -> Prediction | None:
    """As `with_step`, when what goes away slows prompts too (exchange, a late rank, wide weights).

    At the slow end the time beside decode steps stays as it is. Else it shrinks as the step does, or to an ordinary
    prompt's where that is less, to the prompt's floor at the fast end: prompts move more data than steps and are bound
    by products. On a pair of H200 servers of two GPUs, all-reduce over sockets and over NVLink, the step went from 18.8
    to 3.87 ms and the rate from 1,323 to 5,719 tok/s, where the step alone gives 3,255 and shrinking as the step 5,728.
    """
    plain, loop = with_step(picture, step_ms, low_ms, high_ms, binds_next), loop_at_load(picture)
    if plain is None or loop is None:
        return None
    floor = own_prompt_floor_ms(picture)
    central, fast = (
        msgspec.structs.replace(
            loop,
            step_ms=value,
            other_ms_per_request=min(
                loop.other_ms_per_request * value / loop.step_ms, math.inf if floor is None else over * floor
            ),
        )
        for value, over in ((step_ms, SHARED.prompt_over_floor), (low_ms, 1.0))
    )
    return msgspec.structs.replace(plain, tok_s=central.tok_s, high=fast.tok_s)


@sign
def takes_turns(picture: Picture) -> bool:
    """True when the engine says that it does not overlap the host's work with the GPU's."""
    overlap = picture.run.server.overlap_schedule
    return overlap is not None and overlap.value is False


def without_host(picture: Picture, busy_share: float) -> Prediction | None:
    """The rate when the GPU no longer waits for the host as it does, at best not at all. None without a rate."""
    rate = picture.rate_tok_s
    if rate is None or busy_share <= 0:
        return None
    idle = 1 - busy_share
    hides = takes_turns(picture) and idle <= T.hides
    central, least = (T.overlapped, T.regained) if hides else (T.regained, T.regained_least)
    return Prediction(
        tok_s=rate / (1 - central * idle),
        low=rate / (1 - least * idle),
        high=rate / max(T.busy_least * busy_share, busy_share - T.counted),
        binds_next="the GPU's own work",
    )


def with_other_cost(
    picture: Picture, other_ms: float, least_ms: float, *, taken: float = 0.0
) -> Prediction | None:
    """The rate when a request costs `other_ms` beside decode steps (at best `least_ms`, at worst halfway there).

    `taken` is the share of the time that other clients' prompts need at least; like the load's own they ordinarily
    take `other_ms` over `least_ms` as long.
    """
    loop = picture.loop
    if loop is None:
        return None
    halfway = (loop.other_ms_per_request + other_ms) / 2
    central, fast, slow = (
        msgspec.structs.replace(loop, other_ms_per_request=value) for value in (other_ms, least_ms, halfway)
    )
    middle = central.tok_s * max(0.0, 1 - taken * other_ms / least_ms)
    return Prediction(
        tok_s=middle, low=min(middle, slow.tok_s), high=fast.tok_s * (1 - taken), binds_next="decode steps"
    )


def without_neighbour(picture: Picture, busy: float) -> Prediction | None:
    """The rate once a process is gone that alone keeps the GPU busy for the share `busy` of the time.

    Kernels of two processes take turns in equal slices, and the neighbour's work is stretched as the server's is: it
    takes busy / (1 + busy) of the time. It takes `busy` at the fast end, where its work cannot wait, and half
    of the middle where steps leave gaps that it fills.
    """
    rate = picture.rate_tok_s
    if rate is None or busy >= 1:
        return None
    return Prediction(
        tok_s=rate * (1 + busy),
        low=rate * (1 + busy / 2),
        high=rate / (1 - busy),
        binds_next="decode steps",
    )


def without_excess(picture: Picture, cost: PerRequestCost) -> Prediction | None:
    """The rate when each request costs only what the roofline grants it. None without a floor.

    The fixed part of the law stays and grows with the batch as on sound servers. The slow end takes the upper
    interval of the fixed part, twice the ordinary growth and four times the granted bytes (a kernel at a quarter
    of datasheet bandwidth); the fast end the lower interval, no growth and the bytes alone.
    """
    law = law_or_none(picture.law)
    if law is None or cost.granted_slope_ms is None or picture.floors is None:
        return None
    running, granted = cost.at_running, max(0.0, cost.granted_slope_ms)
    fixed = law.fixed_interval or Interval((1 - T.fixed) * law.fixed_ms, (1 + T.fixed) * law.fixed_ms)
    ends = (
        law.fixed_ms * (1 + T.growth * running) + 2 * granted * running,
        fixed.low + granted * running,
        fixed.high * (1 + 2 * T.growth * running) + 4 * granted * running,
    )
    floor, today = picture.floors.here.total_ms, law.step_ms(running)
    central, fast, slow = (min(today, max(floor, step)) for step in ends)
    after = "the fixed part of the step (weights, launches, host)"
    return with_step(picture, central, fast, slow, after)


def _told(picture: Picture, binds_next: str) -> str:
    """What binds next, with a warning where only decode steps were measured."""
    if picture.loop is not None:
        return binds_next
    return f"{binds_next}; prefill is not in these figures, since nothing tells what a request costs beside decode"


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
