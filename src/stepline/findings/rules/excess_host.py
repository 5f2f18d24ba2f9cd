"""H300 excess-host.

What it means:
    The GPU waits between its kernels for longer than it usually does, and no rule knows why.

Why it costs:
    The step is as long as GPU and host together.

Evidence needed:
    A trace with decode steps and an unprofiled step at its batch, or the GPU's busy share from unprofiled counters
    while requests run all the time. Idle time inside a profiled trace is never evidence.

How it decides:
    The gap between the GPU's work and the unprofiled step, or the idle share of the counters, is at least 15 % of it;
    counters that say the GPU is busy clear it, since the gap is then other work. A specific finding that explains half
    of it takes its place.

What would prove it wrong:
    GPU busy share near 100 % at the same load, unprofiled.

What to try:
    `py-spy` or `perf` on the scheduler's process; its CPU quota and the other processes on its cores.

References:
    docs/identifiability.md
"""

from stepline import units
from stepline.findings.general import finding, judged
from stepline.findings.outcome import Clear, Fired, Observation, Outcome, Proof, Rival, Rule, Try, recovered
from stepline.model.change.less_idle import without_host
from stepline.model.picture.picture import Picture
from stepline.model.signs.accounting import HOST_GAP
from stepline.model.signs.host import BusyShare, gpu_busy, gpu_busy_share
from stepline.model.signs.host import T as HOST

_RIVALS = (
    Rival("H302 cuda-graph-off", "launches a step against kernels a step, or the graph setting"),
    Rival("H301 host-bound", "CPU time of the scheduler's thread: busy all the time, or waiting"),
)
_TRIES = (
    Try("look at what the scheduler's thread does (py-spy dump), and at its cores and quota", "nothing"),
)
_PROOF = Proof("add a short profiler trace without stacks to the folder", 10.0)


def check(picture: Picture) -> Outcome:
    """Decide whether the GPU waits for the host longer than usual."""
    counted = gpu_busy_share(picture)
    if counted is not None and 1 - counted[0] < HOST.gpu_idle:
        return Clear(f"the GPU is {units.percent(counted[0])} busy by {counted[1]} unprofiled samples")
    found = judged(picture, (HOST_GAP,))
    if isinstance(found, tuple):
        return finding(picture, *found, rivals=_RIVALS, tries=_TRIES, proof=_PROOF)
    busy, load = gpu_busy(picture), picture.load
    if busy is None or isinstance(found, Clear):
        return found
    if load is None or (load.concurrency is None and not load.queued):
        return found
    return _by_counters(picture, busy)


def _by_counters(picture: Picture, busy: BusyShare) -> Fired:
    gain = without_host(picture, busy.share)
    return Fired(
        status="suspected",
        headline=f"the GPU idles {units.percent(1 - busy.share)} of the time while requests run",
        evidence=(Observation(f"the GPU is {units.percent(busy.share)} busy ({busy.instrument})"),),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        rivals=_RIVALS,
        tries=_TRIES,
        proof=_PROOF,
    )


RULE = Rule("H300", "excess-host", "0.1.0", check, general=True)
