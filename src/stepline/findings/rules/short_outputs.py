"""L103 short-outputs.

This rule makes notes only: no capture of a benchmark that was misread for this reason stands behind it yet.

What it means:
    Answers are so short beside their prompts that the load is prefill: every decode step shares the GPU with more
    prompt tokens than it has room for.

Why it costs:
    Nothing on the server. The rate of output tokens, and the time per token with prompts inside, say little about
    decode, and changes of the decode step will not show in them.

Evidence needed:
    Running batch, prompt and output length of the load, and how much of the prompts was cached. Optional: model and
    GPU, which give the time of a prompt itself.

How it decides:
    In steady state each step ends running ÷ output answers, whose successors bring that many prompts. Fired when the
    least time of these prompts is longer than the decode step; without model or GPU, when they have more tokens
    than any GPU can compute while it reads the same weights once (a mixture of experts reads more than it multiplies,
    so there the model should be given).

What would prove it wrong:
    With outputs ten times as long the rate of output tokens hardly changes.

What to try:
    Measure decode with longer outputs, or with prompts that the prefix cache holds; report input and output rates
    beside each other.

References:
    docs/identifiability.md; SemiAnalysisAI/InferenceX, results for outputs of 128 tokens (rates follow the prompt
    length)
"""

from stepline import units
from stepline.facts.hardware import all_gpus
from stepline.findings.outcome import CannotTell, Clear, Fired, Observation, Outcome, Proof, Rival, Rule, Try
from stepline.model.picture.picture import Load, Picture
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.prefill_floor import prefill_floor_ms
from stepline.model.signs.cached_prompts import cached_share


def check(picture: Picture) -> Outcome:
    """Decide whether the load is prompts more than decode."""
    load = picture.load
    if load is None or not load.output_tokens or load.input_tokens is None:
        return CannotTell("prompt and output length of the load", "keep the client's result beside the log")
    share, _ = cached_share(picture)
    prompt = load.input_tokens * (1 - (share or 0.0))
    starts = load.running / load.ranks / load.output_tokens
    times = _times_ms(picture, prompt, starts)
    heavy = starts * prompt > _most_tokens() if times is None else times[0] > times[1]
    if not heavy:
        return Clear(f"a decode step comes with {starts * prompt:,.0f} prompt tokens, and is the longer part")
    return Fired(
        status="suspected",
        headline=f"the load is prefill: {starts * prompt:,.0f} prompt tokens come with each decode step of "
        f"{load.running / load.ranks:.3g}",
        evidence=_evidence(load, prompt, times),
        rivals=(Rival("S204 prefill-interference", "prefill time over its own floor"),),
        tries=(Try("measure decode with outputs ten times as long", "a longer measurement"),),
        proof=Proof("the same load with longer outputs", 60.0),
    )


def _most_tokens() -> float:
    """Tokens that a GPU can multiply with a weight while it reads that weight once, of the GPU that can most.

    Peak FLOP/s over bandwidth, for two bytes and two FLOPs a parameter; 8-bit weights have half the bytes and twice the
    rate. 206 on an H200, 948 on a Jetson Thor.
    """
    return max(gpu.peak("bf16") / gpu.bandwidth_bytes_s for gpu in all_gpus())


def _times_ms(picture: Picture, prompt: float, starts: float) -> tuple[float, float] | None:
    """Least ms of the prompts that come with a step, computed together, and ms of the step itself.

    The step as measured where no prompt is inside, else its floor. None without model, GPU or live context.
    """
    target, floors, step = picture.target, picture.floors, picture.step
    if target.architecture is None or target.gpu is None or floors is None or step is None:
        return None
    prompts_ms = prefill_floor_ms(
        Deployment(target.architecture, target.gpu, target.layout),
        starts * prompt,
        sequences=starts,
        routing=floors.used,
    )
    return prompts_ms, floors.here.total_ms if step.upper_bound else step.measured_ms


def _evidence(load: Load, prompt: float, times: tuple[float, float] | None) -> tuple[Observation, ...]:
    lengths = Observation(
        f"{prompt:,.0f} prompt tokens to compute and {load.output_tokens:,.0f} output tokens a request ({load.source})"
    )
    if times is None:
        most = (
            f"no known GPU multiplies over {_most_tokens():.0f} tokens with a weight while it reads it once"
        )
        return (lengths, Observation(most))
    return (
        lengths,
        Observation(f"prompts need {units.ms(times[0])} or more for each step of {units.ms(times[1])}"),
    )


RULE = Rule("L103", "short-outputs", "0.1.0", check, proven=False)
