"""S205 spec-not-paying.

What it means:
    Speculative decoding costs more than it saves: a speculative step takes longer than the tokens it yields are worth.

Why it costs:
    Draft passes and a wider verification lengthen every step. At larger batches the step is no longer bound by weights
    that are read anyway, and speculation can lose its graphs or its overlap with the host.

Evidence needed:
    The rate with and without speculation at one batch (two logs, or an A/B), or the accept length.

How it decides:
    Confirmed when plain decoding at the same batch is over 10 % faster in the same evidence. Suspected when a step
    yields under 1.2 tokens over all steps, those without drafts included, so that drafts are all but wasted.

What would prove it wrong:
    With speculation off, the rate falls.

What to try:
    Fewer draft tokens, speculation off above a batch, or off; a restart.

References:
    sgl-project/sglang issue 6949; vllm-project/vllm issue 49548
"""

import statistics

from stepline import units
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
from stepline.model.change.gain import Gain
from stepline.model.change.less_idle import without_host
from stepline.model.change.shorter_step import without_drafts
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.measure.windows import DecodeWindow
from stepline.model.picture.picture import Picture
from stepline.model.signs.host import T as HOST
from stepline.model.signs.host import gpu_busy
from stepline.model.signs.speculation import T as DRAFTS
from stepline.model.signs.speculation import tokens_a_step
from stepline.threshold import Threshold


class T:
    """Thresholds of this rule."""

    halves = Threshold(
        1.8,
        "tokens a step",
        why="From here speculation is said to halve the number of steps; words only.",
    )


def check(picture: Picture) -> Outcome:
    """Decide whether speculation pays."""
    windows = picture.windows.usable or picture.windows.bounded
    drafted = [window for window in windows if window.speculative]
    server = picture.run.server.speculative
    accept = tokens_a_step(picture)
    if accept is None:
        if server is None and picture.run.decodes:
            return Clear("nothing speaks of speculative decoding")
        return CannotTell(
            "whether the server speculates, and its accept length",
            "save log, /metrics, client results and GPU samples under load",
        )
    plain = [window for window in windows if not window.speculative]
    pair = _same_batch(drafted, plain)
    if pair is not None:
        return _compared(*pair, accept)
    if accept < DRAFTS.wasted:
        return _wasted(picture, accept)
    return CannotTell(
        f"the same load without speculation (accept length {accept:.2f})",
        "stepline compare BEFORE AFTER, recorded with speculation on and off",
    )


def _same_batch(
    drafted: list[DecodeWindow], plain: list[DecodeWindow]
) -> tuple[list[DecodeWindow], list[DecodeWindow]] | None:
    """Windows with and without speculation at the largest batch that has both."""
    both = {w.running for w in drafted} & {w.running for w in plain}
    if not both:
        return None
    running = max(both)
    return [w for w in drafted if w.running == running], [w for w in plain if w.running == running]


def _compared(drafted: list[DecodeWindow], plain: list[DecodeWindow], accept: float) -> Outcome:
    running = drafted[0].running
    with_it = statistics.median(1000 * running * w.accept_length / w.step_ms for w in drafted)
    without = statistics.median(1000 * running / w.step_ms for w in plain)
    if without < (1 + SHARED.worth) * with_it:
        return Clear(
            f"at {running} running speculation gives {units.tok_s(with_it)}, plain decoding {units.tok_s(without)}"
        )
    gain = Gain(tok_s=without, low=without, high=without, binds_next="plain decoding")
    return Fired(
        status="confirmed",
        headline=f"speculation halves the step count and still loses: {units.times(without / with_it)} faster without"
        if accept > T.halves
        else f"decoding is {units.times(without / with_it)} faster without speculation",
        evidence=(
            Observation(
                f"{units.tok_s(with_it)} with {accept:.2f} tokens a step of "
                f"{units.ms(statistics.median(w.step_ms for w in drafted))} at {running} running",
                drafted[0].origin,
            ),
            Observation(
                f"{units.tok_s(without)} without, {units.ms(statistics.median(w.step_ms for w in plain))} a step",
                plain[0].origin,
            ),
        ),
        recoverable_tok_s=without - with_it,
        gain=gain,
        ruled_out=(RuledOut("a poor draft", f"{accept:.2f} tokens a step are accepted"),)
        if accept > DRAFTS.wasted
        else (),
        tries=_TRIES,
        proof=_PROOF,
    )


def _wasted(picture: Picture, accept: float) -> Fired:
    rate, busy = picture.rate_tok_s, gpu_busy(picture)
    gain = without_drafts(picture)
    evidence = [Observation(f"{accept:.2f} tokens a step and request, the step's own included")]
    if busy is not None and 1 - busy.share >= HOST.gpu_idle:
        # Drafts that the host makes keep the GPU waiting; without them the host is as fast as any.
        gain = gain or without_host(picture, busy.share)
        evidence.append(
            Observation(f"the GPU idles {units.percent(1 - busy.share)} of the time ({busy.instrument})")
        )
    if gain is None and rate is not None:
        gain = Gain(tok_s=rate * DRAFTS.wasted, low=rate, high=rate * 2, binds_next="plain decoding")
    return Fired(
        status="suspected",
        headline=f"a speculative step yields {accept:.2f} tokens: the drafts are all but wasted",
        evidence=tuple(evidence),
        recoverable_tok_s=recovered(rate, gain),
        gain=gain,
        rivals=(Rival("H301 host-bound", "the same load without speculation"),),
        tries=_TRIES,
        proof=_PROOF,
    )


_TRIES = (
    Try("switch speculation off, or draft fewer tokens", "a restart; single streams may decode slower"),
)
_PROOF = Proof("stepline compare BEFORE AFTER, recorded with speculation on and off", 60.0)

RULE = Rule("S205", "spec-not-paying", "0.1.0", check)
