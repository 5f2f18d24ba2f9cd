"""K404 kernel-fallback.

What it means:
    A part of the model that engines compute with one fused kernel (attention, its indexer, experts) runs operator by
    operator: copies, products and element-wise kernels of the framework.

Why it costs:
    Every operator writes its result to memory and the next reads it back, often in fp32.

Evidence needed:
    A trace with decode steps. To name the part: operators or stacks (steps without graphs), or a chain of kernels that
    is known. To confirm: also model, GPU and live context, for the floor.

How it decides:
    General kernels launched for the part take at least 10 % of the step and half of the part's time, and the part
    takes over three times its floor. In graph replays, which record no operators, the framework's own kernels must
    take 25 % of the step, or 10 % in several kinds of kernels that run in every layer, and what they compute stays
    open: suspected. Work sized by the configured context is K401's, one kernel launched for each request K403's.

What would prove it wrong:
    Another backend for that part with the same step.

What to try:
    The backend flag of that part (`--attention-backend`, `--moe-runner-backend`); the log says which one was chosen
    and often why.

References:
    sgl-project/sglang pull request 29927; vllm-project/vllm pull request 45916; docs/identifiability.md;
    tests/data/h200-torch/README.md (the positive and look-alikes behind this rule)
"""

from stepline import units
from stepline.findings.cite import levers_ruled_out
from stepline.findings.outcome import (
    CannotTell,
    Clear,
    Fired,
    Observation,
    Outcome,
    Proof,
    Rival,
    Rule,
    RuledOut,
    Try,
    recovered,
)
from stepline.model.change.estimate import Estimate
from stepline.model.change.gain import Gain
from stepline.model.change.shorter_step import traced_batch_step, with_step
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.measure.traced_step import TracedStep
from stepline.model.picture.picture import Picture
from stepline.model.signs.kernel_paths import (
    GenericPath,
    component_floor_ms,
    generic_path,
    layered_ms,
    loose_ms,
    one_by_one,
)
from stepline.model.signs.per_request_excess import T as EXCESS
from stepline.threshold import Threshold


class T:
    """Thresholds of this rule."""

    most = Threshold(
        0.5,
        "share of a part's GPU time",
        why="General kernels with so much of it are the part's path; a fused one has some beside it.",
    )
    loose = Threshold(
        0.25,
        "share of the step",
        why="The framework's own kernels without an owner that need explaining.",
        source="sound captures have up to 5 % (SGLang on MI300X, a bf16 model in plain PyTorch on the "
        "H200), an unfused attention 36 %; sampling in PyTorch over the logits of a small model "
        "and a large batch comes to 15 % by the bytes it moves",
    )
    layered = Threshold(
        0.1,
        "share of the step",
        why="The same of kernels that run in every layer, which sampling does not.",
        source="sound captures have up to 4.4 % there (a bf16 model in plain PyTorch on the H200)",
    )


def check(picture: Picture) -> Outcome:
    """Decide whether a part of the model runs operator by operator."""
    traced = picture.traced
    if traced is None:
        return CannotTell(
            "kernel names of decode steps: a line in N or L fits several causes",
            "take a short trace without stacks and add it to the folder",
        )
    if traced.capacity_work is not None:
        return Clear("the generic kernels work over the configured context: K401 accounts for them")
    path = generic_path(traced.group)
    if path is not None and path.generic_ms >= SHARED.worth * traced.step_ms:
        return _named(picture, traced, path)
    alone = sum(kernel.busy_ms for kernel in one_by_one(picture, traced.group))
    if alone >= SHARED.worth * traced.step_ms:
        return Clear("a kernel is launched for one request after the other: K403 accounts for it")
    layered, loose = layered_ms(picture, traced.group), loose_ms(traced.group)
    if loose >= T.loose * traced.step_ms or layered >= T.layered * traced.step_ms:
        return _unnamed(traced, loose)
    return Clear(
        f"the framework's own kernels take {units.percent(loose / traced.step_ms)} of the decode step, "
        "and no part of the model runs on them"
    )


def _named(picture: Picture, traced: TracedStep, path: GenericPath) -> Outcome:
    if path.generic_ms < T.most * path.total_ms:
        return Clear(
            f"{path.component} runs on kernels of its own; general ones take "
            f"{units.percent(path.generic_ms / path.total_ms)} of it"
        )
    floor_ms = component_floor_ms(picture, path.component, traced.group.batch)
    if floor_ms is not None and path.total_ms < EXCESS.above_roofline * floor_ms:
        return Clear(
            f"{path.component} runs on general kernels at {units.times(path.total_ms / floor_ms)} its floor: "
            "a fused one would gain little"
        )
    certain = floor_ms is not None
    gain = None if floor_ms is None else _gain(picture, traced, path.total_ms, floor_ms)
    against = "" if floor_ms is None else f", against a floor of {units.ms(floor_ms)}"
    return Fired(
        status="confirmed" if certain else "suspected",
        headline=f"{path.component} runs operator by operator: {units.percent(path.total_ms / traced.step_ms)} "
        "of a decode step",
        evidence=(
            Observation(
                f"{path.component} takes {units.ms(path.total_ms)} of {units.ms(traced.step_ms)} a step at "
                f"{traced.group.batch} running{against} [{traced.file}]"
            ),
            Observation(
                f"{units.percent(path.generic_ms / path.total_ms)} of it is in general kernels, most in "
                f"`{path.dearest.name[:60]}`, known by its {path.dearest.found_by}"
                + (f" at {path.dearest.site}" if path.dearest.site else "")
            ),
        ),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        ruled_out=(
            RuledOut(
                "K401 context-capacity-work", "no chain of these kernels is sized by the configured context"
            ),
            RuledOut(
                "H301 host-bound", f"the kernels themselves take {units.ms(path.generic_ms)} of GPU time"
            ),
            *levers_ruled_out(picture),
        ),
        rivals=()
        if certain
        else (Rival("a part that is large", "model, GPU and live context, for its floor"),),
        tries=(_TRY,),
        proof=_PROOF,
    )


def _unnamed(traced: TracedStep, loose: float) -> Fired:
    share = units.percent(loose / traced.step_ms)
    return Fired(
        status="suspected",
        headline=f"the framework's own kernels take {share} of a decode step: some part runs operator by operator",
        evidence=(
            Observation(
                f"{units.ms(loose)} of {units.ms(traced.step_ms)} a step at {traced.group.batch} running is in copies "
                f"and element-wise kernels of the framework [{traced.file}]"
            ),
        ),
        ruled_out=(
            RuledOut(
                "K401 context-capacity-work", "no chain of these kernels is sized by the configured context"
            ),
        ),
        rivals=(
            Rival(
                "sampling and norms in a small model",
                "steps without graphs (--disable-cuda-graph, --enforce-eager), whose operators name the part",
            ),
        ),
        tries=(_TRY,),
        proof=_PROOF,
    )


def _gain(picture: Picture, traced: TracedStep, total_ms: float, floor_ms: float) -> Gain | None:
    """The part at three times its floor.

    At the fast end it is at its floor and the gaps between its many kernels are gone, at the slow end half of it stays.
    """
    step = traced_batch_step(picture)
    if step is None:
        return None
    rest = step.measured_ms - total_ms
    return with_step(
        picture,
        Estimate(
            rest + EXCESS.above_roofline * floor_ms,
            min(step.measured_ms, traced.group.busy_ms) - total_ms + floor_ms,
            rest + max(total_ms / 2, EXCESS.above_roofline * floor_ms),
        ),
        "the rest of the step",
    )


_TRY = Try("choose another backend for that part, and read in the log why this one was chosen", "a restart")
_PROOF = Proof("stepline compare BEFORE AFTER, recorded with either backend", 60.0)

RULE = Rule("K404", "kernel-fallback", "0.1.0", check)
