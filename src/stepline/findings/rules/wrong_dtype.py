"""K405 wrong-dtype.

What it means:
    The matrix products of the weights run in 32 bits although the checkpoint is narrower: a flag, a cast while loading
    or a kernel choice widened them.

Why it costs:
    Weights in 32 bits are twice the bytes of bf16, and products in fp32 leave the tensor cores.

Evidence needed:
    A trace with decode steps, and the model's config.json; or an A/B of the type.

How it decides:
    Confirmed when kernels that multiply in fp32 or tf32 take at least half of all matrix time and 10 % of the step,
    while the checkpoint's weights have under 24 bits on average. Less than half can be attention or a router computed
    operator by operator (K404), so it is left open; so are wide products beside narrow ones that alone take as long as
    reading all weights must: those multiply the weights, and the wide ones something else (K401, K404). No counter is
    needed: kernels name their type. An A/B in which 32 bits are 10 % faster or more confirms it too: the 16-bit kernels
    that were chosen are the fault.

What would prove it wrong:
    The same kernels after the type was set, or a config.json that is not the served one.

What to try:
    Set the type to the checkpoint's (`--dtype bfloat16` or `auto`); it needs a restart.

References:
    vllm-project/vllm issue 54950; tests/data/h200-torch/README.md (the positive and look-alikes behind this rule)
"""

from stepline import units
from stepline.findings.outcome import (
    CannotTell,
    Clear,
    Fired,
    Observation,
    Outcome,
    Proof,
    Rule,
    RuledOut,
    Try,
    recovered,
)
from stepline.model.change.estimate import Estimate
from stepline.model.change.gain import Gain
from stepline.model.change.shorter_step import saved_at_load, with_exchange
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.measure.traced_step import TracedStep
from stepline.model.picture.picture import Picture
from stepline.model.signs.kernel_paths import T as PATHS
from stepline.model.signs.kernel_paths import (
    WideProducts,
    weight_bits,
    weights_floor_ms,
    wide_products,
)
from stepline.threshold import Threshold


class T:
    """Thresholds of this rule."""

    most = Threshold(
        0.5,
        "share of matrix time",
        why="So much of it wide and it is the weights; single wide layers (head, router) stay below.",
    )
    all = Threshold(
        0.9,
        "share of matrix time",
        why="From here the whole model was widened, not a part of it.",
    )
    slow = Threshold(
        1.5,
        "times the floor",
        why="Slow end of the gain: what narrow products take over the bytes they must read.",
    )


def check(picture: Picture) -> Outcome:
    """Decide whether the weights are multiplied in a wider type than they were stored in."""
    traced = picture.traced
    if traced is None:
        return CannotTell(
            "kernel names of decode steps", "take a short trace without stacks and add it to the folder"
        )
    wide = wide_products(traced.group)
    share = wide.wide_ms / traced.step_ms
    if share < SHARED.worth:
        return Clear(f"products in 32 bits take {units.percent(share)} of the decode step")
    architecture = picture.target.architecture
    if architecture is None:
        return CannotTell(
            f"the type of the weights: {units.percent(share)} of the step multiplies in 32 bits",
            "give the model's config.json or --model",
        )
    bits = weight_bits(architecture)
    if bits >= PATHS.wide_bits:
        return Clear("the checkpoint itself is in 32 bits")
    if wide.wide_ms < T.most * wide.matrices_ms:
        return CannotTell(
            f"for what {units.percent(share)} of the step multiplies in 32 bits, as other products do not",
            "take a trace with shapes of steps without graphs (--disable-cuda-graph, --enforce-eager)",
        )
    least_ms = weights_floor_ms(picture, traced.group.batch)
    if least_ms is not None and wide.narrow_ms >= least_ms:
        return CannotTell(
            f"what {units.percent(share)} of the step multiplies in 32 bits: the other products take "
            f"{units.ms(wide.narrow_ms)}, enough for all weights ({units.ms(least_ms)})",
            "take a trace with shapes of steps without graphs (--disable-cuda-graph, --enforce-eager)",
        )
    return _fired(picture, traced, wide, bits)


def _fired(picture: Picture, traced: TracedStep, wide: WideProducts, bits: float) -> Fired:
    gain = _gain(picture, wide)
    evidence = [
        Observation(
            f"{units.ms(wide.wide_ms)} of {units.ms(wide.matrices_ms)} matrix time a step multiplies in 32 bits, "
            f"most in `{wide.dearest[:60]}` [{traced.file}]"
        ),
        Observation(f"the checkpoint's weights have {bits:.0f} bits"),
    ]
    stated = picture.run.server.weight_dtype
    if stated is not None:
        evidence.append(Observation(f"the engine says {stated.value}", stated.origin))
    return Fired(
        status="confirmed",
        headline=f"weights of {bits:.0f} bits are multiplied in 32: {units.percent(wide.wide_ms / traced.step_ms)} "
        "of a decode step",
        evidence=tuple(evidence),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        ruled_out=(
            RuledOut(
                "K404 kernel-fallback",
                f"{units.percent(wide.wide_ms / wide.matrices_ms)} of all matrix time is wide",
            ),
            RuledOut(
                "H301 host-bound", f"these kernels keep the GPU busy {units.ms(wide.wide_ms)} of a step"
            ),
        ),
        tries=(Try("set the type to the checkpoint's (--dtype auto or bfloat16)", "a restart"),),
        proof=Proof("stepline compare BEFORE AFTER, recorded with either --dtype", 60.0),
    )


def _gain(picture: Picture, wide: WideProducts) -> Gain | None:
    """These products at the floor of their weights; half of their time, or half as much again, at the slow end.

    Where all products are wide, so is the rest of the step: its floor is the fast end.
    """
    step, floors, traced = picture.step, picture.floors, picture.traced
    if step is None or floors is None or traced is None:
        return None
    least, most = saved_at_load(picture, traced, wide.wide_ms)
    whole, now = floors.here.total_ms, step.measured_ms
    share = wide.wide_ms / wide.matrices_ms
    floor = share * sum(part.ms for part in floors.here.components if part.name != "kv read")
    fast = whole if share >= T.all else max(whole, now - most + floor)
    central = min(now, max(whole, now - (least + most) / 2 + floor))
    slow = min(now, now - least + max(T.slow * floor, least / 2))
    return with_exchange(picture, Estimate(central, fast, slow), "weight reads in the checkpoint's type")


RULE = Rule("K405", "wrong-dtype", "0.1.0", check)
