"""K406 tensor-pipe-idle.

This rule makes notes only: a counter of the tensor pipe proves no cause, and no capture with this fault exists yet.

What it means:
    The tensor pipe works less than the step's own matrix products need on it, so some of them run elsewhere.

Why it costs:
    Products on the plain cores are many times slower. A low reading alone costs nothing: decode at a small batch leaves
    the tensor pipe idle on any healthy server.

Evidence needed:
    Tensor-pipe activity under load by unprofiled counters, the step, its batch, model and GPU.

How it decides:
    Expected is what tile-padded FLOPs of the step take of the pipe, by the narrowest tiles, one token's experts and the
    GPU's fastest type. Under half of that is a note; all above is clear.

What would prove it wrong:
    Kernel names of tensor-core products in a trace of the same step (K405 reads them).

What to try:
    A short trace without stacks: it names the kernels and the types they multiply in.

References:
    PTX ISA, shapes of mma and wgmma; docs/identifiability.md
"""

from stepline import units
from stepline.findings.outcome import CannotTell, Clear, Fired, Observation, Outcome, Proof, Rival, Rule, Try
from stepline.model.picture.picture import Picture
from stepline.model.signs.tensor_pipe import tensor_reading
from stepline.threshold import Threshold


class T:
    """Thresholds of this rule."""

    too_low = Threshold(
        0.5,
        "measured over least expected",
        why="Samples hold pauses between steps too, and prefill, which adds more than it.",
        source="on the host-limited H200 captures pauses take up to three fifths of the time",
    )


def check(picture: Picture) -> Outcome:
    """Decide whether the tensor pipe does less than the step needs."""
    reading = tensor_reading(picture)
    if reading is None:
        return CannotTell(
            "tensor-pipe activity under load, and the step, model and GPU to hold it against",
            "record GPU samples (GPM or DCGM) under load, and give --gpu and the model's config.json",
        )
    least = reading.expected.low / reading.narrowest
    if reading.measured >= T.too_low * least:
        return Clear(
            f"the tensor pipe reads {units.percent(reading.measured)}, and the step needs at least "
            f"{units.percent(least)} of it"
        )
    return Fired(
        status="suspected",
        headline=f"the tensor pipe reads {units.percent(reading.measured)} where the step's products need "
        f"{units.percent(least)}",
        evidence=(
            Observation(
                f"tile-padded FLOPs of the step take {units.percent(reading.expected.low)} of the bf16 peak, "
                f"{units.percent(least)} in the GPU's fastest type"
            ),
        ),
        rivals=(
            Rival("K405 wrong-dtype", "kernel names of decode steps: a short trace without stacks"),
            Rival("pauses between steps", "the GPU's busy share over the same samples"),
        ),
        tries=(Try("take a short trace without stacks", "seconds; the server may stand still for some"),),
        proof=Proof("add the trace to the folder", 10.0),
    )


RULE = Rule("K406", "tensor-pipe-idle", "0.1.0", check, proven=False)
