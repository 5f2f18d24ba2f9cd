"""C502 straggler-rank.

What it means:
    One rank reaches the collectives later than the others, and all of them wait for it in every step.

Why it costs:
    A step of a tensor-parallel replica takes as long as its slowest rank, while the others' GPUs spin in collectives.

Evidence needed:
    Traces of all ranks of one capture, with decode steps.

How it decides:
    The median of the other ranks spends at least 10 % of the step longer in collectives than the rank that waits least.
    Confirmed when that rank's own GPU work is longer by at least half of the wait; else it only starts late, and its
    host is the rival.

What would prove it wrong:
    Another rank is the late one in the next capture, or the wait stays when the rank moves to another GPU.

What to try:
    Look for another process, a lower clock or a fault on that GPU; compare the ranks' numbers of kernels.

References:
    TraceLens (skew against transfer in collectives); tests/data/h200-torch/README.md (the positives and look-alikes
    behind this rule)
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
from stepline.model.change.estimate import Estimate
from stepline.model.change.gain import Gain
from stepline.model.change.shorter_step import saved_at_load, with_exchange
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture
from stepline.model.signs.communication import Communication, communication, world
from stepline.threshold import Threshold


class T:
    """Thresholds of this rule."""

    same_work = Threshold(
        0.02,
        "share of a rank's kernels",
        why="Ranks whose kernel counts differ by less run the same program: they differ by a copy "
        "or a sampling kernel, not by layers.",
    )


def check(picture: Picture) -> Outcome:
    """Decide whether the ranks wait for one of them."""
    comm = communication(picture)
    if comm is None and picture.traced is not None and world(picture) == 1:
        return Clear("one GPU runs the model: nobody waits")
    if comm is None or not comm.others:
        return CannotTell(
            "decode steps of at least two ranks of one capture",
            "take a short trace without stacks on all ranks and add the files to the folder",
        )
    if comm.waiting_ms < SHARED.worth * comm.step_ms:
        return Clear(
            f"{len(comm.ranks)} ranks wait for each other at most "
            f"{units.percent(comm.waiting_ms / comm.step_ms)} of the decode step"
        )
    return _fired(picture, comm)


def _fired(picture: Picture, comm: Communication) -> Fired:
    late, waiting = comm.latest, comm.waiting_ms
    gain = _gain(picture, comm)
    works = comm.longer_work_ms >= waiting / 2
    usual = statistics.median(rank.kernels for rank in comm.others)
    others_ms = statistics.median(rank.own_ms for rank in comm.others)
    evidence = [
        Observation(
            f"rank {late.rank} spends {units.ms(late.exposed_ms)} of a step in collectives, the others "
            f"{units.ms(late.exposed_ms + waiting)} of {units.ms(comm.step_ms)}"
        ),
        Observation(
            f"its own GPU work takes {units.ms(late.own_ms)} for {late.kernels:.0f} kernels, the others' "
            f"{units.ms(others_ms)} for {usual:.0f}"
        ),
    ]
    return Fired(
        status="confirmed" if works else "suspected",
        headline=f"all ranks wait for rank {late.rank}, {units.percent(waiting / comm.step_ms)} of a decode step"
        + (f": {_why(late.kernels, usual)}" if works else ""),
        evidence=tuple(evidence),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        ruled_out=(
            RuledOut(
                "C501 comm-bound",
                f"rank {late.rank}, which waits for nobody, moves the same data in its time",
            ),
            *((RuledOut("H301 host-bound", "the rank's GPU works all that time longer"),) if works else ()),
        ),
        rivals=()
        if works
        else (Rival("H301 host-bound", f"what the host of rank {late.rank} does before it launches a step"),),
        tries=(
            Try(
                f"look for other processes and the clocks on the GPU of rank {late.rank} (nvidia-smi)", "none"
            ),
            Try(
                "swap two GPUs (CUDA_VISIBLE_DEVICES) and see whether the late rank moves along", "a restart"
            ),
        ),
        proof=Proof("stepline trace on a new capture of all ranks, with two GPUs swapped", 10.0),
    )


def _why(kernels: float, usual: float) -> str:
    if abs(kernels - usual) <= T.same_work * usual:
        return "its GPU does the same work more slowly"
    return "it has more work" if kernels > usual else "its GPU works longer for other work"


def _gain(picture: Picture, comm: Communication) -> Gain | None:
    """The step without the wait; the others' own work and what `latest` exchanges at the fast end.

    At the slow end half of the wait stays, as when the work is only shared out evenly.
    """
    step, traced = picture.step, picture.traced
    if step is None or traced is None:
        return None
    least, most = saved_at_load(picture, traced, comm.waiting_ms)
    others_ms = statistics.median(rank.own_ms for rank in comm.others) + comm.latest.exposed_ms
    _, all_of_it = saved_at_load(picture, traced, max(comm.waiting_ms, traced.step_ms - others_ms))
    return with_exchange(
        picture,
        Estimate(
            step.measured_ms - (least + most) / 2, step.measured_ms - all_of_it, step.measured_ms - least / 2
        ),
        "the other ranks' own work",
    )


RULE = Rule("C502", "straggler-rank", "0.1.0", check)
