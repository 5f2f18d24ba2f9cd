"""H302 cuda-graph-off.

What it means:
    Decode steps run without CUDA graphs: the host launches every kernel of every step one by one.

Why it costs:
    A decode step is hundreds of short kernels. Launched singly they take the host 20 to 30 ms where the GPU needs 5;
    the GPU waits in between, whatever the batch.

Evidence needed:
    Decode passes without a graph, from the counter or the decode lines (prefill lines say nothing: prefill runs
    eagerly on purpose). To confirm: the GPU's busy share from unprofiled counters.

How it decides:
    Decode runs eagerly, and the GPU is idle for over 15 % of the load. Where the GPU is busy all the same, graphs
    would save little and the rule is clear. Without counters: suspected when steps take over 2.5 times the floor.

What would prove it wrong:
    With graphs on, the step stays the same.

What to try:
    Remove `--disable-cuda-graph` / `--enforce-eager`; costs a restart, capture time and graph memory.

References:
    NVIDIA CUDA C++ Programming Guide, "CUDA Graphs".
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
from stepline.model.change.shorter_step import with_launches
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture
from stepline.model.signs.host import BusyShare, gpu_busy, graph_use, traced_eager
from stepline.model.signs.host import T as HOST
from stepline.threshold import Threshold


class T:
    """Thresholds of this rule."""

    fast = Threshold(
        0.8,
        "share of the GPU's work in a step",
        why="Fast end of the gain: kernels of a graph have shorter gaps than counters see between launches.",
    )
    slow = Threshold(
        1.25,
        "times the GPU's work in a step",
        why="Slow end of the gain: a quarter more for the gaps that stay.",
    )
    of_floor = Threshold(
        0.6,
        "expected floor over step",
        why="Without counters, the share of its floor that a step with graphs reaches: sound steps "
        "take 1.6 to 1.8 times the floor.",
        source="healthy decode on the H200",
    )


def check(picture: Picture) -> Outcome:
    """Decide whether decode pays for launching without graphs."""
    graphs = graph_use(picture)
    share = graphs.eager_share
    if share is None and graphs.setting is None:
        return CannotTell(
            "whether decode uses graphs", "look for `cuda graph:` in a decode line, or record /metrics"
        )
    if share is not None and share < HOST.eager:
        return Clear(f"decode ran in graphs ({graphs.source}: {units.percent(1 - share)})")
    if share is None and graphs.setting is True:
        return Clear("decode graphs are on by setting")
    busy = gpu_busy(picture)
    if busy is not None and 1 - busy.share < HOST.gpu_idle:
        return Clear(
            f"graphs are off, but the GPU is {units.percent(busy.share)} busy: they would save little"
        )
    if picture.step is None:
        return CannotTell("the decode step without graphs", "record the log under steady load")
    if busy is None and (picture.gap is None or picture.gap < SHARED.healthy_gap):
        return CannotTell(
            "how long the GPU waits for the host: graphs are off, which may or may not cost here",
            "sample GPU counters under load (NVML GPM or DCGM), or measure with graphs on",
        )
    return _fired(picture, busy, share is not None or traced_eager(picture) is True)


def _fired(picture: Picture, busy: BusyShare | None, seen: bool) -> Fired:  # noqa: FBT001
    step, graphs = picture.step, graph_use(picture)
    assert step is not None  # noqa: S101  # check() asked
    gain = _gain(picture, busy)
    evidence = [_passes(picture)]
    if busy is not None:
        evidence.append(
            Observation(
                f"the GPU is busy {units.percent(busy.share)} of the time ({busy.instrument}), "
                f"so about {units.ms(busy.share * step.measured_ms)} of each {units.ms(step.measured_ms)} step"
            )
        )
    if picture.gap is not None:
        evidence.append(Observation(f"the step takes {units.times(picture.gap)} its floor"))
    if graphs.setting is False:
        setting = picture.run.server.decode_graphs
        evidence.append(
            Observation(
                "decode graphs are switched off by setting", None if setting is None else setting.origin
            )
        )
    rivals = (
        ()
        if busy is not None
        else (Rival("K404 kernel-fallback", "GPU busy share from unprofiled counters"),)
    )
    ruled = (
        (
            RuledOut(
                "K404 kernel-fallback",
                f"slow kernels would keep the GPU busy; it idles {units.percent(1 - busy.share)}",
            ),
        )
        if busy is not None
        else ()
    )
    return Fired(
        status="confirmed" if busy is not None and seen else "suspected",
        headline="decode runs without CUDA graphs and waits for the host",
        evidence=tuple(evidence),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        ruled_out=ruled,
        rivals=rivals,
        tries=(
            Try(
                "remove --disable-cuda-graph (SGLang) or --enforce-eager (vLLM)",
                "a restart; seconds of capture at start; graph memory (0.1 to 8 GB seen)",
            ),
        ),
        proof=Proof("stepline compare BEFORE AFTER, recorded with graphs off and on", 60.0),
    )


def _passes(picture: Picture) -> Observation:
    graphs = graph_use(picture)
    if graphs.eager_passes is not None:
        return Observation(
            f"{graphs.eager_passes:,.0f} decode passes ran without a graph, none with", graphs.origin
        )
    if graphs.eager_lines:
        return Observation(f"all {graphs.eager_lines} decode lines say that no graph was used", graphs.origin)
    if traced_eager(picture):
        assert picture.traced is not None  # noqa: S101  # it is traced
        group = picture.traced.group
        return Observation(
            f"a traced decode step makes {group.launches:,.0f} launches of {group.kernels:,.0f} kernels "
            f"[{picture.traced.file}]"
        )
    return Observation("the engine was started without decode graphs", graphs.origin)


def _gain(picture: Picture, busy: BusyShare | None) -> Gain | None:
    step, floors = picture.step, picture.floors
    if step is None:
        return None
    if busy is not None:
        # What the GPU works on in a step is what a graph replay would take; a quarter more for its own gaps.
        # Counters that read less than the floor are wrong: no step is shorter.
        least = 0.0 if floors is None else floors.strict.total_ms
        after = max(least, busy.share * step.measured_ms)
        fastest = max(least, T.fast * after)
    elif floors is not None:
        after, fastest = floors.expected.total_ms / T.of_floor, floors.strict.total_ms
    else:
        return None
    binds_next = "GPU work of the step itself"
    return with_launches(picture, Estimate(after, fastest, T.slow * after), binds_next, prompts_too=True)


RULE = Rule("H302", "cuda-graph-off", "0.1.0", check)
