"""P601 clock-throttle.

What it means:
    The GPU works at a clock far below its full one, because heat, its power supply or a setting holds it back.

Why it costs:
    Prefill and every kernel bound by its SMs slow down with the clock. Decode bound by memory loses less, and nothing
    while only the power cap is active and the clock stays near the full one.

Evidence needed:
    SM clock and clock event reasons of the GPU while it is busy, and the full clock: a data sheet's, or the highest of
    the recording. Optional: the step, which bounds what the clock can cost.

How it decides:
    Fired when the busy GPU's median clock is under 85 % of the full one and at least half of the samples name heat, a
    hardware slowdown, the power supply's brake or a clock setting; without reasons, when it is under half of the full
    one. Suspected: what decode loses is not known before the clock is back. The software power cap alone never fires.

What would prove it wrong:
    At the full clock the steps of the same batch take as long.

What to try:
    Airflow and fan curve; the power limit and locked clocks (`nvidia-smi -q -d CLOCK,POWER,PERFORMANCE`); move the load
    to a cool GPU and compare.

References:
    NVML, nvmlClocksEventReasons; rammsguns/llm-rig issue 100; ashalliants/ninfer-3090 pull request 72 (a power cap that
    does not limit decode)
"""

import msgspec

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
from stepline.model.change.loop_rates import loop_at_load
from stepline.model.picture.picture import Picture
from stepline.model.signs.sm_clocks import Clocks, clocks
from stepline.threshold import Threshold


class T:
    """Thresholds of this rule."""

    low_clock = Threshold(
        0.85,
        "share of the full clock",
        why="Below it the clock costs time.",
        source="medians under load are 0.89 to 1.00 on healthy H200 servers, with the power cap set in "
        "up to 80 % of the samples",
    )
    far_below = Threshold(
        0.5,
        "share of the full clock",
        why="Below it without a sample that tells a reason: no power cap of a working server is "
        "known to go as low.",
    )
    read = Threshold(
        0.98,
        "share of the read clock",
        why="Slack of the fast end of the gain: clocks are read as medians of samples.",
        source="samples differ by 1 to 2 % on healthy H200 servers",
    )
    named = Threshold(
        0.5,
        "share of the samples",
        why="Samples that name heat, hardware or a setting before one of them is the cause: most of them.",
    )


def check(picture: Picture) -> Outcome:
    """Decide whether something holds the GPU's clock down."""
    seen = clocks(picture)
    if seen is None:
        return CannotTell(
            "SM clock and clock event reasons of the busy GPU, and its full clock",
            "record GPU samples under load, and give --gpu",
        )
    if seen.share >= T.low_clock:
        return Clear(f"the busy GPU's clock is {_clock(seen)}")
    held = seen.held_back_share
    if held is None and seen.share >= T.far_below:
        return CannotTell(f"why the clock is {_clock(seen)}", "record the clock event reasons beside it")
    if held is not None and held < T.named:
        return Clear(
            f"the clock is {_clock(seen)}, but only {units.percent(held)} of the samples name heat, hardware or a "
            "setting: a power cap, which costs decode little"
        )
    return _fired(picture, seen)


def _clock(seen: Clocks) -> str:
    return f"{seen.sm_mhz:,.0f} of {seen.full_mhz:,.0f} MHz ({seen.full_source})"


def _fired(picture: Picture, seen: Clocks) -> Fired:
    why = f": {' and '.join(seen.reasons)}" if seen.reasons else ""
    evidence = [
        Observation(f"the GPU's clock is {_clock(seen)}, median of {seen.samples} busy samples", seen.origin)
    ]
    if seen.stated:
        evidence = [Observation(f"the GPU's clock is {_clock(seen)}, as stated", seen.origin)]
    if seen.held_back_share is not None:
        evidence.append(Observation(f"{units.percent(seen.held_back_share)} of the samples name{why[1:]}"))
    if seen.temperature_c is not None:
        evidence.append(Observation(f"it was up to {seen.temperature_c:.0f} °C hot"))
    gain = _at_full_clock(picture, seen.share)
    power = "a software power cap"
    return Fired(
        status="suspected",
        headline=f"the GPU runs at {units.percent(seen.share)} of its clock{why}",
        evidence=tuple(evidence),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        ruled_out=()
        if seen.held_back_share is None
        else (RuledOut(power, "the samples name another reason"),),
        rivals=(Rival(power, "clock event reasons"), Rival("an idle GPU", "its busy share"))
        if seen.stated
        else (),
        tries=(
            Try("cool the GPU, or raise what holds its clock down", "more power and noise"),
            Try("move the load to another GPU", "a restart"),
        ),
        proof=Proof("measure the same load at the full clock, and diagnose both", 60.0),
    )


def _at_full_clock(picture: Picture, share: float) -> Gain | None:
    """At best steps and prefill take as much less time as the clock is higher, at worst what they take now."""
    loop = loop_at_load(picture)
    if loop is None:
        return None
    least_ms = 0.0 if picture.floors is None else min(loop.step_ms, picture.floors.here.total_ms)
    middle, best = (
        msgspec.structs.replace(
            loop,
            step_ms=max(least_ms, loop.step_ms * part),
            other_ms_per_request=loop.other_ms_per_request * part,
        )
        for part in ((1 + share) / 2, T.read * share)
    )
    after = "memory bandwidth, which the SM clock leaves alone"
    return Gain(tok_s=middle.tok_s, low=loop.tok_s, high=best.tok_s, binds_next=after)


RULE = Rule("P601", "clock-throttle", "0.1.0", check)
