"""H306 process-contention.

What it means:
    Something else works on the server's GPU: another process whose kernels take turns with the engine's.

Why it costs:
    Two processes on one GPU share it by time slices, so each step waits for the other's kernels.

Evidence needed:
    The GPU's busy share while the engine has no request (gauges at zero and no token made), by samples in between.

How it decides:
    A serving GPU is at least 10 % busy (median) while the engine is idle. Contention for the host's cores shows as H301
    with graphs on and is not told apart here.

What would prove it wrong:
    `nvidia-smi` shows no other process, and the engine's own warm-up or offloading ran in those moments.

What to try:
    Move the other process to another GPU, or stop it; `nvidia-smi pmon` names it.

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
    Try,
    recovered,
)
from stepline.model.change.less_idle import without_neighbour
from stepline.model.measure.idle_engine import idle_use
from stepline.model.picture.picture import Picture
from stepline.threshold import Threshold


class T:
    """Thresholds of this rule."""

    foreign = Threshold(
        0.1,
        "busy share with an idle engine",
        why="Another process works on the GPU.",
        source="at most 0.01 % in 38 recordings of H200 servers, 52 % beside another process",
    )


def check(picture: Picture) -> Outcome:
    """Decide whether another process works on the GPU."""
    use = idle_use(picture.run)
    if use is None:
        return CannotTell(
            "the GPU's busy share while the engine is idle",
            "record with /metrics and GPU samples, some seconds of it without load",
        )
    if use.busy < T.foreign:
        return Clear(
            f"the GPU is {units.percent(use.busy)} busy while the engine is idle ({use.samples} samples)"
        )
    gain = without_neighbour(picture, use.busy)
    return Fired(
        status="suspected",
        headline=f"the GPU is {units.percent(use.busy)} busy while the engine has no request",
        evidence=(
            Observation(
                f"median of {use.samples} samples between scrapes that show no request and no token made",
                use.origin,
            ),
        ),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        rivals=(Rival("the engine's own work (warm-up, offloading)", "nvidia-smi pmon: whose kernels run"),),
        tries=(Try("move the other process to another GPU", "that process is interrupted"),),
        proof=Proof("record the same load without the other process", 60.0),
    )


RULE = Rule("H306", "process-contention", "0.1.0", check)
