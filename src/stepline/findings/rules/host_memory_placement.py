"""H307 host-memory-placement.

What it means:
    A part of the weights stays in host memory and is copied to the GPU in every step.

Why it costs:
    The link between host and GPU is tens of times slower than the GPU's memory, and the step waits for the copy.

Evidence needed:
    The setting that offloads weights, and the step. To confirm: a trace with the copies.

How it decides:
    The bytes by the setting take at least 10 % of the measured step over the fastest PCIe link. Suspected, since no
    copy was seen. The GPU idles meanwhile, which is no work of the host: H301 is clear.

What would prove it wrong:
    A trace of decode steps without copies from the host.

What to try:
    Keep all weights on the GPU: no offloading, fewer bits, or more GPUs.

References:
    docs/identifiability.md
"""

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
from stepline.model.change.estimate import Estimate
from stepline.model.change.gain import Gain
from stepline.model.change.shorter_step import with_step
from stepline.model.picture.picture import Picture
from stepline.model.signs.host_memory import OffloadedWeights, offloaded_weights


def check(picture: Picture) -> Outcome:
    """Decide whether weights in host memory set the step."""
    said = picture.run.server.offloaded_gib
    if said is None:
        return CannotTell(
            "whether weights stay in host memory", "add the server's settings (/server_info) or its log"
        )
    if said.value <= 0:
        return Clear("no weights are offloaded")
    if picture.step is None:
        return CannotTell("the decode step", "add the log or a client result of the same load")
    found = offloaded_weights(picture)
    if found is None:
        return Clear(
            f"{said.value:g} GiB of offloaded weights take under a tenth of the step over a PCIe 5.0 link"
        )
    return _fired(picture, found)


def _fired(picture: Picture, found: OffloadedWeights) -> Fired:
    gain = _gain(picture, found)
    size, rate = units.size(found.bytes), units.size(found.byte_s)
    return Fired(
        status="suspected",
        headline=f"{size} of weights are copied from host memory in every step",
        evidence=(
            Observation(f"the setting keeps {size} of weights in host memory on each GPU", found.origin),
            Observation(
                f"a step takes {units.ms(found.step_ms)}: the copy runs at {rate}/s or more, and takes "
                f"{units.ms(found.least_ms)} at least over PCIe 5.0"
            ),
        ),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        ruled_out=(
            RuledOut("KV reads as such", "the GPU's own memory delivers the same bytes in a hundredth of it"),
        ),
        rivals=(Rival("H301 host-bound", "a trace of decode steps: copies from the host, or none"),),
        tries=(
            Try("keep all weights on the GPU (--cpu-offload-gb 0)", "a restart; less room for the KV cache"),
        ),
        proof=Proof("stepline compare BEFORE AFTER, recorded with either setting", 60.0),
    )


def _gain(picture: Picture, found: OffloadedWeights) -> Gain | None:
    """The typical step; without one, the step less the least time of the copy."""
    floors = picture.floors
    if floors is None or floors.typical is None:
        left = found.step_ms - found.least_ms
        return with_step(picture, Estimate(left, left / 2, left), "the rest of the step")
    usual = floors.typical
    steps = Estimate(usual.ms, max(usual.low_ms, floors.here.total_ms), usual.high_ms)
    return with_step(picture, steps.at_most(found.step_ms), "weights in the GPU's own memory")


RULE = Rule("H307", "host-memory-placement", "0.1.0", check)
