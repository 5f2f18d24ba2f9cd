"""C501 comm-bound.

What it means:
    The GPUs of one replica spend a good part of each decode step moving data between them, longer than they must.

Why it costs:
    A decode step holds one or two all-reduces a layer, and nothing else runs while they do.

Evidence needed:
    Traces of all ranks of one capture with decode steps. One rank's trace gives a suspicion, since waiting for a late
    rank looks the same there. Rates and times per token tell nothing: a slow link adds a fixed part like any other.

How it decides:
    Exposed communication, less what ranks wait for the last to arrive, exceeds the time these collectives commonly
    take on such GPUs by 10 % of the step. Where no latency is published for the GPU the slowest published one stands
    in. Confirmed when several ranks on one clock show that data moves all that time.

What would prove it wrong:
    Another all-reduce (custom, one-shot, symmetric memory) or a faster link with the same step.

What to try:
    Peer-to-peer access and the engine's custom all-reduce, which are switched off silently on some boards; fewer ranks.

References:
    local-inference-lab/rtx6kpro, optimization/pcie-oneshot-allreduce.md; vllm-project/vllm issue 56128;
    tests/data/h200-torch/README.md (the positives and look-alikes behind this rule)
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
from stepline.model.change.shorter_step import saved_at_load, with_exchange
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture
from stepline.model.signs.communication import Communication, collective_floor_us, communication, world


def check(picture: Picture) -> Outcome:
    """Decide whether moving data between GPUs takes longer than it must."""
    comm = communication(picture)
    if comm is None:
        return _without(picture)
    share = comm.moving_ms / comm.step_ms
    if share < SHARED.worth:
        return Clear(f"moving data between GPUs takes {units.percent(share)} of the decode step")
    each_us, source = collective_floor_us(picture, comm.batch)
    floor_ms = comm.collectives * each_us / 1e3
    if comm.moving_ms - floor_ms < SHARED.worth * comm.step_ms:
        return Clear(
            f"{comm.collectives:.0f} collectives take {units.ms(comm.moving_ms)} of the step, "
            f"{units.ms(floor_ms)} of it {source}: only fewer GPUs would save that"
        )
    return _fired(picture, comm, floor_ms, source)


def _without(picture: Picture) -> Outcome:
    server, layout = picture.run.server, picture.target.layout
    alone = server.tp is not None and layout.tp * layout.pp == 1
    if (picture.traced is not None and world(picture) == 1) or alone:
        return Clear("one GPU runs the model: nothing is exchanged in a step")
    return CannotTell(
        "time in collectives: rates alone do not tell a slow link from any other fixed cost of a step",
        "take a short trace without stacks on all ranks and add the files to the folder",
    )


def _fired(picture: Picture, comm: Communication, floor_ms: float, source: str) -> Fired:
    gain = _gain(picture, comm, floor_ms)
    certain = comm.transfer_us is not None
    evidence = [
        Observation(
            f"{comm.collectives:.0f} collectives a step leave the GPU without other work for "
            f"{units.ms(comm.moving_ms)} of {units.ms(comm.step_ms)}"
        ),
        Observation(
            f"that is {1e3 * comm.moving_ms / comm.collectives:.0f} µs each; "
            f"{1e3 * floor_ms / comm.collectives:.0f} µs {source}"
        ),
    ]
    wait = f"on the ranks' common clock data moves {comm.transfer_us or 0.0:.0f} µs of each after the last has arrived"
    ruled_out = (RuledOut("C502 straggler-rank", wait),) if certain else ()
    rivals = (
        ()
        if certain
        else (Rival("C502 straggler-rank", "traces of all ranks: who arrives last, and how late"),)
    )
    return Fired(
        status="confirmed" if certain else "suspected",
        headline=f"exchanging data between GPUs takes {units.percent(comm.moving_ms / comm.step_ms)} of a decode step",
        evidence=tuple(evidence),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        ruled_out=(*ruled_out, RuledOut("H301 host-bound", "collectives run on the GPU all that time")),
        rivals=rivals,
        tries=(
            Try(
                "check peer-to-peer access (`nvidia-smi topo -p2p r`) and that no flag or variable disables it",
                "none",
            ),
            Try(
                "switch the custom or symmetric-memory all-reduce on",
                "a restart; refused where links lack peer access",
            ),
            Try("run more replicas of fewer GPUs", "a restart; each replica's KV pool is smaller"),
        ),
        proof=Proof("stepline compare BEFORE AFTER, recorded with either all-reduce", 60.0),
    )


def _gain(picture: Picture, comm: Communication, floor_ms: float) -> Gain | None:
    """The step with collectives at their usual time; at the fast end the GPUs' own work alone."""
    step, traced = picture.step, picture.traced
    if step is None or traced is None:
        return None
    least, most = saved_at_load(picture, traced, comm.moving_ms - floor_ms, all_growth=True)
    beside_own = traced.step_ms - max(rank.own_ms for rank in comm.ranks)
    _, all_of_it = saved_at_load(picture, traced, max(comm.moving_ms, beside_own), all_growth=True)
    return with_exchange(
        picture,
        Estimate(
            step.measured_ms - (least + most) / 2, step.measured_ms - all_of_it, step.measured_ms - least
        ),
        "weights and the rest of the step",
    )


RULE = Rule("C501", "comm-bound", "0.1.0", check)
