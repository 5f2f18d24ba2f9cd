"""H301 host-bound.

What it means:
    With decode graphs on, the GPU still waits for the host between steps: scheduling, sampling, detokenising, Python.

Why it costs:
    The step takes as long as the host, so faster kernels change nothing.

Evidence needed:
    The GPU's busy share from unprofiled counters while requests run. Idle inside a profiled trace is never evidence.
    Optional: the step law, which is not monotone or flat where the host sets the step.

How it decides:
    Fired when graphs are used (or unknown) and the GPU idles over 15 % of an undisturbed load that never wants for
    requests (a closed loop, or a queue); over 10 % where the engine says that host and GPU take turns. Confirmed when
    it idles over 15 % inside decode steps: by a trace whose GPU work is that much shorter than the unprofiled step at
    the same batch, or, without one, because the time beside decode steps cannot hold so much. Where it can, and prompts
    beside answers exceed the graphs, H303 accounts for it; where drafts are all but wasted, S205; where weights stay in
    host memory, H307.

What would prove it wrong:
    GPU busy share near 100 % at the same load, unprofiled.

What to try:
    Overlap scheduling on; fewer Python hooks, log levels and metrics; pinned and unshared CPU cores.

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
from stepline.model.change.less_idle import takes_turns, without_host
from stepline.model.measure.law import NoLaw, follows_no_batch
from stepline.model.picture.picture import Picture
from stepline.model.signs.host import (
    BusyShare,
    beyond_graphs,
    gpu_busy,
    graph_use,
    idles_beside_prompts,
    idles_in_decode,
)
from stepline.model.signs.host import T as HOST
from stepline.model.signs.host_memory import offloaded_weights
from stepline.model.signs.speculation import wasted
from stepline.threshold import Threshold


class T:
    """Thresholds of this rule."""

    taking_turns = Threshold(
        0.1,
        "idle share of the GPU",
        why="Worth naming where overlap is off by setting, so that the host's turn is known to be "
        "in the step.",
        source="healthy H200 servers read up to 6 % idle",
    )


def check(picture: Picture) -> Outcome:
    """Decide whether the host sets the step."""
    graphs = graph_use(picture)
    if graphs.off:
        return Clear("decode graphs are off: H302 accounts for the host's time")
    if picture.step is not None and picture.step.graph is False:
        return Clear("steps at this batch run without a graph: H303 accounts for the host's time")
    if beyond_graphs(picture):
        return Clear(
            "more requests run than decode graphs are captured for: H303 accounts for the host's time"
        )
    if wasted(picture):
        return Clear(
            "drafts bring next to nothing, and it is the host that makes them: S205 accounts for its time"
        )
    if offloaded_weights(picture) is not None:
        return Clear(
            "weights are copied from host memory in every step: H307 accounts for the GPU's idle time"
        )
    busy = gpu_busy(picture)
    if busy is None:
        law = picture.law
        sign = f"; {law.reason}" if isinstance(law, NoLaw) and follows_no_batch(law) else ""
        return CannotTell(
            f"the GPU's busy share while requests run, unprofiled{sign}",
            "save log, /metrics, client results and GPU samples under load",
        )
    idle = 1 - busy.share
    if idle < (T.taking_turns if takes_turns(picture) else HOST.gpu_idle):
        return Clear(f"the GPU is {units.percent(busy.share)} busy ({busy.instrument})")
    if idles_beside_prompts(picture, busy):
        return Clear(
            f"the GPU idles {units.percent(idle)} of the time, as long as prompts run beside answers without a graph: "
            "H303 accounts for it"
        )
    if not (_traced_idle(picture) or _loaded_without_pause(picture)):
        return CannotTell(
            f"whether requests run all the time: the GPU idles {units.percent(idle)} of it, as between requests",
            "measure with a fixed number of streams (a closed loop) and keep the result beside the log",
        )
    return _fired(picture, busy)


def _traced_idle(picture: Picture) -> bool:
    """True when the GPU work of a traced decode step is that much shorter than the unprofiled step."""
    traced = picture.traced
    return traced is not None and traced.busy_share is not None and traced.busy_share < 1 - HOST.gpu_idle


def _loaded_without_pause(picture: Picture) -> bool:
    """True when a client keeps its streams going or requests wait: then no idle time is for want of requests."""
    load = picture.load
    return load is not None and (load.concurrency is not None or bool(load.queued))


def _fired(picture: Picture, busy: BusyShare) -> Fired:
    rate = picture.rate_tok_s
    gain = without_host(picture, busy.share)
    evidence = [Observation(f"the GPU is busy {units.percent(busy.share)} of the time ({busy.instrument})")]
    if isinstance(picture.law, NoLaw) and follows_no_batch(picture.law):
        evidence.append(Observation(f"the step does not follow the batch: {picture.law.reason}"))
    traced = picture.traced
    if traced is not None and traced.wall_ms is not None:
        evidence.append(
            Observation(
                f"at {traced.group.batch} running the GPU works {units.ms(traced.group.busy_ms)} of a step that takes "
                f"{units.ms(traced.wall_ms)} unprofiled [{traced.file}]"
            )
        )
    in_decode = idles_in_decode(picture, busy)
    loop = picture.loop
    if in_decode and loop is not None and not _traced_idle(picture):
        evidence.append(
            Observation(f"only {units.percent(1 - loop.decode_share)} of the time lies beside decode steps")
        )
    graphs = graph_use(picture)
    ruled = [
        RuledOut(
            "K403 linear-step",
            f"slow kernels would keep the GPU busy; it idles {units.percent(1 - busy.share)}",
        )
    ]
    if in_decode:
        ruled.append(
            RuledOut("S204 prefill-interference", "decode steps themselves are longer than their GPU work")
        )
    if graphs.eager_share is not None:
        ruled.append(
            RuledOut("H302 cuda-graph-off", f"{units.percent(1 - graphs.eager_share)} of decode used graphs")
        )
    return Fired(
        status="confirmed" if in_decode else "suspected",
        headline=f"the GPU waits for the host {units.percent(1 - busy.share)} of the time",
        evidence=tuple(evidence),
        recoverable_tok_s=recovered(rate, gain),
        gain=gain,
        ruled_out=tuple(ruled),
        rivals=()
        if in_decode
        else (
            Rival(
                "S204 prefill-interference",
                "a short trace without stacks: is the idle time in decode or prefill",
            ),
        ),
        tries=(
            Try("keep overlap scheduling on and give the scheduler a core of its own", "a restart"),
            Try("lower the log level and per-token work in the front end", "less logging"),
        ),
        proof=Proof("add a short profiler trace without stacks to the folder", 10.0),
    )


RULE = Rule("H301", "host-bound", "0.1.0", check)
