"""What exchanging data between GPUs costs a decode step, and who keeps whom waiting, by the traces of all its ranks.

A collective runs on a GPU from the moment that GPU arrives until all have arrived and the data has moved. So the
exposed time of one rank is waiting and moving in one; the rank that arrives last only moves.
"""

import statistics

import msgspec

from stepline.evidence.trace import StepGroup, TraceSummary
from stepline.facts.hardware import all_gpus
from stepline.model.measure.traced_step import TracedStep
from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import sign

BYTES_PER_VALUE = 2
"""Engines reduce activations in 16 bits."""


class RankStep(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's mean decode step."""

    rank: int
    exposed_ms: float
    """In collectives while nothing else ran on its GPU."""
    own_ms: float
    """GPU busy time beside that."""
    kernels: float


class Communication(msgspec.Struct, frozen=True, kw_only=True):
    """The exchange of one decode step."""

    ranks: tuple[RankStep, ...]
    """The ranks whose traces show this step, one or more."""
    collectives: float
    """Per step."""
    step_ms: float
    batch: int | None
    transfer_us: float | None
    """Of one collective after the last rank had arrived, mean; None with one rank or no clock in common."""

    @property
    def moving_ms(self) -> float:
        """Per step, what is left of the exposed time once nobody waits for a late rank."""
        least = min(rank.exposed_ms for rank in self.ranks)
        return least if self.transfer_us is None else min(least, self.collectives * self.transfer_us / 1e3)

    @property
    def latest(self) -> RankStep:
        """The rank that waits least: the others wait for it."""
        return min(self.ranks, key=lambda rank: rank.exposed_ms)

    @property
    def others(self) -> tuple[RankStep, ...]:
        """The ranks that wait for `latest`."""
        return tuple(rank for rank in self.ranks if rank is not self.latest)

    @property
    def waiting_ms(self) -> float:
        """Per step, what the median of the others waits longer than `latest`; 0 with one rank."""
        if not self.others:
            return 0.0
        return statistics.median(rank.exposed_ms for rank in self.others) - self.latest.exposed_ms

    @property
    def longer_work_ms(self) -> float:
        """Per step, what `latest` works longer than the median of the others; not above 0 when it only starts late."""
        if not self.others:
            return 0.0
        return self.latest.own_ms - statistics.median(rank.own_ms for rank in self.others)


@sign
def communication(picture: Picture) -> Communication | None:
    """The exchange of the traced decode step; None without a trace or collectives in it."""
    traced, trace = picture.traced, picture.run.trace
    if traced is None or trace is None:
        return None
    steps = [
        RankStep(
            rank=index if rank.rank is None else rank.rank,
            exposed_ms=group.exposed_communication_ms,
            own_ms=group.busy_ms - group.exposed_communication_ms,
            kernels=group.kernels,
        )
        for index, rank in enumerate(trace.ranks)
        if (group := _same(rank.groups, traced)) is not None
    ]
    collectives = sum(part.kernels for part in traced.group.components if part.component == "communication")
    if not collectives:
        return None
    return Communication(
        ranks=tuple(steps),
        collectives=collectives,
        step_ms=traced.step_ms,
        batch=traced.group.batch,
        transfer_us=_transfer_us(trace),
    )


def _same(groups: tuple[StepGroup, ...], traced: TracedStep) -> StepGroup | None:
    kind, batch = traced.group.kind, traced.group.batch
    return next((group for group in groups if (group.kind, group.batch) == (kind, batch)), None)


def _transfer_us(trace: TraceSummary) -> float | None:
    collectives = sum(wait.collectives for wait in trace.waits)
    return 1e3 * sum(wait.transfer_ms for wait in trace.waits) / collectives if collectives else None


@sign
def world(picture: Picture) -> int:
    """GPUs that exchange data in a step, by the layout or, where it was not told, by the trace."""
    layout, trace = picture.target.layout, picture.run.trace
    told = [] if trace is None else [rank.world_size or 1 for rank in trace.ranks]
    return max(layout.tp * layout.pp, *told, 1)


@sign
def collective_floor_us(picture: Picture, batch: int | None) -> tuple[float, str]:
    """The time of one all-reduce as engines commonly reach it, and where the number comes from.

    Latency of a small one plus, where model and link are known, the time to move this batch's activations. For a GPU
    without a published latency the slowest published one stands in, so that only what exceeds any machine is above it.
    """
    gpu, count = picture.target.gpu, world(picture)
    known = None if gpu is None else gpu.allreduce_us_common.get(count)
    if gpu is None or known is None:
        slowest = max(us for other in all_gpus() for us in other.allreduce_us_common.values())
        return slowest, f"the slowest published for any machine, as none is known for {count} of these GPUs"
    moved_us, architecture = 0.0, picture.target.architecture
    if architecture is not None and gpu.link_bytes_s and batch:
        message = batch * architecture.hidden * BYTES_PER_VALUE
        moved_us = 1e6 * 2 * (count - 1) / count * message / (gpu.link_bytes_s / 2)
    return known + moved_us, f"as engines commonly reach it on {count}x {gpu.name}"


@sign
def slow_exchange_share(picture: Picture) -> float:
    """Share of the traced decode step by which moving data exceeds its usual time; 0 without a trace that shows it."""
    comm = communication(picture)
    if comm is None:
        return 0.0
    usual_ms = comm.collectives * collective_floor_us(picture, comm.batch)[0] / 1e3
    return min(1.0, max(0.0, comm.moving_ms - usual_ms) / comm.step_ms)


@sign
def late_rank_share(picture: Picture) -> float:
    """Share of the traced decode step in which the ranks wait for one of them; 0 without traces that show it."""
    comm = communication(picture)
    return 0.0 if comm is None else comm.waiting_ms / comm.step_ms
