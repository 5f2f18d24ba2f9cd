"""H303 cuda-graph-uncovered-batch.

What it means:
    The running batch exceeds the largest captured decode graph, so those steps run eagerly. No line warns of it. Where
    an engine computes prompts and answers in one forward (vLLM), graphs are counted in tokens, and a prompt can carry a
    batch beyond them that alone would fit.

Why it costs:
    The step jumps from graph replay to host launch time, service slows, requests pile up and the batch stays large:
    the state holds itself.

Evidence needed:
    Decode steps on both sides of the captured sizes, or the captured sizes and the running batch. For prompts beside
    answers: their length, the GPU's busy share and the time beside decode steps.

How it decides:
    Lines with a graph at smaller batches and without at larger ones, and steps over 10 % above the law of the covered
    batches: confirmed. The same jump at the captured sizes while the GPU idles, where lines do not say: confirmed. Only
    sizes and running batch: suspected. A prompt beside the answers exceeds the graphs, at least a tenth of the time
    lies beside decode steps, and the GPU idles over 15 %, no longer than fits there: suspected.

What would prove it wrong:
    With larger graphs captured, the step at that batch stays.

What to try:
    Raise `--cuda-graph-max-bs` (SGLang) or `max_cudagraph_capture_size` (vLLM) above the running batch; a restart and
    graph memory.

References:
    docs/identifiability.md; tests/data/h200-lab (graphs to 128 and to 512 tokens: 3,935 and 5,230 tok/s)
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
    SettingChange,
    Try,
    recovered,
)
from stepline.model.change.estimate import Estimate
from stepline.model.change.larger_batch import step_on_law
from stepline.model.change.less_idle import with_other_cost
from stepline.model.change.shorter_step import with_clean_step
from stepline.model.measure.instruments import Instrument
from stepline.model.measure.law import LawPoint, fit, law_or_none
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture
from stepline.model.picture.step_points import point_at
from stepline.model.signs.host import T as HOST
from stepline.model.signs.host import (
    beside_prompt,
    beyond_graphs,
    gpu_busy,
    graph_use,
    idles_beside_prompts,
    prompts_beyond_graphs,
)
from stepline.model.signs.recompute import own_prompt_floor_ms
from stepline.threshold import Threshold


class T:
    """Thresholds of this rule."""

    slow = Threshold(
        1.3,
        "times the covered law",
        why="Slow end of the gain: a covered step at a batch further out than any measured.",
    )
    fast = Threshold(
        0.9,
        "times the covered law",
        why="Fast end of the gain.",
    )


def check(picture: Picture) -> Outcome:
    """Decide whether batches above the captured sizes run eagerly and pay for it."""
    law = law_or_none(picture.law)
    if law is not None and law.eager:
        worst = max(law.eager, key=lambda point: point.running)
        covered_ms = step_on_law(picture, law, worst.running)
        ratio = worst.step_ms / covered_ms
        busy = gpu_busy(picture)
        if busy is not None and 1 - busy.share < HOST.gpu_idle:
            return Clear(f"{worst.running:g} run eagerly, but the GPU is {units.percent(busy.share)} busy")
        if ratio < SHARED.off_law:
            return Clear(
                f"{worst.running:g} run eagerly at {units.times(ratio)} the covered law: no cost worth naming"
            )
        return _measured(picture, worst, covered_ms)
    sizes = picture.run.server.decode_graph_sizes
    if graph_use(picture).setting is False:
        return Clear("decode graphs are off altogether: H302 accounts for that")
    if sizes is None:
        return CannotTell(
            "the captured graph sizes", "read cuda_graph_bs in /server_info or `Capture … bs=[…]` in the log"
        )
    if picture.load is None:
        return CannotTell("the running batch", "record the server's log or /metrics")
    largest = max(sizes.value)
    running = picture.load.running / picture.load.ranks
    tokens = prompts_beyond_graphs(picture)
    if tokens is not None and (beside := _beside_prompts(picture, tokens, largest)) is not None:
        return beside
    if not beyond_graphs(picture):
        return Clear(f"graphs are captured up to {largest}, {running:g} run, and no line above that is eager")
    measured = _by_sizes(picture, largest, running)
    if measured is not None:
        return measured
    return Fired(
        status="suspected",
        headline=f"{running:g} requests run, but decode graphs end at {largest}",
        evidence=(
            Observation(f"largest captured decode graph: {largest}", sizes.origin),
            Observation(f"running batch: {running:g} ({picture.load.source})"),
        ),
        rivals=(
            Rival(
                "H301 host-bound",
                "decode steps on both sides of the ceiling, or the log's `cuda graph:` field",
            ),
        ),
        tries=(_raise(_covering(picture, running)),),
        proof=Proof(
            "stepline compare BEFORE AFTER, recorded with graphs as they are and above the batch",
            60.0,
        ),
    )


def _by_sizes(picture: Picture, largest: int, running: float) -> Fired | None:
    """Steps on both sides of the largest graph, from an engine whose log does not say which ones used it."""
    covered = [point for point in picture.wall_points if point.running <= largest * HOST.edge]
    eager = point_at([point for point in picture.wall_points if point.running > largest * HOST.edge], running)
    law = law_or_none(fit(covered, Instrument.COVERED))
    busy = gpu_busy(picture)
    if law is None or eager is None or busy is None or 1 - busy.share < HOST.gpu_idle:
        return None
    covered_ms = step_on_law(picture, law, eager.running)
    return None if eager.step_ms < SHARED.off_law * covered_ms else _measured(picture, eager, covered_ms)


def _covering(picture: Picture, running: float) -> float:
    """Size from which graphs cover the batch, and prompts beside it where the engine puts them in one forward."""
    return max(running, beside_prompt(picture) or 0.0)


def _beside_prompts(picture: Picture, tokens: float, largest: int) -> Fired | None:
    """Prompts that share forwards with answers and carry them beyond the graphs, where the GPU waits meanwhile.

    None where that costs nothing worth naming.
    """
    loop, busy, sizes = picture.loop, gpu_busy(picture), picture.run.server.decode_graph_sizes
    if loop is None or busy is None or sizes is None or not idles_beside_prompts(picture, busy):
        return None
    cost = f"{units.ms(loop.other_ms_per_request)} a request"
    gain, floor_ms = None, own_prompt_floor_ms(picture)
    if floor_ms is not None:
        cost = f"{cost}, where its prompt needs {units.ms(floor_ms)}"
        gain = with_other_cost(picture, min(loop.other_ms_per_request, HOST.covered * floor_ms), floor_ms)
    return Fired(
        status="suspected",
        headline=f"prompts beside answers make forwards of {tokens:,.0f} tokens, but graphs end at {largest}",
        evidence=(
            Observation(
                f"{units.percent(1 - loop.decode_share)} of the time lies beside decode steps: {cost}"
            ),
            Observation(
                f"the GPU idles {units.percent(1 - busy.share)} of the time ({busy.instrument}), "
                "as much as fits beside decode steps"
            ),
            Observation(f"largest captured graph: {largest} tokens", sizes.origin),
        ),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        rivals=(Rival("H301 host-bound", "the same load with graphs up to that size"),),
        tries=(
            Try(
                f"capture graphs up to {tokens:,.0f} tokens or more (max_cudagraph_capture_size)",
                "a restart; longer capture at start; graph memory",
            ),
        ),
        proof=Proof(
            "stepline compare BEFORE AFTER, recorded with graphs as they are and up to that size", 60.0
        ),
    )


def _measured(picture: Picture, eager: LawPoint, covered_ms: float) -> Fired:
    slow_ms = max(covered_ms, min(eager.step_ms, T.slow * covered_ms))
    gain = with_clean_step(
        picture, Estimate(covered_ms, T.fast * covered_ms, slow_ms), "the covered step law"
    )
    busy = gpu_busy(picture)
    ruled = [
        RuledOut("K403 linear-step", "steps with graphs lie on the covered law; only those without jump")
    ]
    if busy is not None:
        ruled.append(
            RuledOut("K404 kernel-fallback", f"the GPU is only {units.percent(busy.share)} busy at this load")
        )
    return Fired(
        status="confirmed",
        headline=f"batches above the graphs run eagerly: {units.ms(eager.step_ms)} a step at {eager.running:g}",
        evidence=(
            Observation(
                f"step at {eager.running:g} without a graph: {units.ms(eager.step_ms)} "
                f"({eager.windows} windows); the law of the covered batches says {units.ms(covered_ms)}"
            ),
        ),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        ruled_out=tuple(ruled),
        tries=(_raise(_covering(picture, eager.running)),),
        proof=Proof(
            "stepline compare BEFORE AFTER, recorded with graphs as they are and above the batch",
            60.0,
        ),
    )


def _raise(running: float) -> Try:
    return Try(
        f"capture decode graphs up to {running:.0f} or more (--cuda-graph-max-bs, max_cudagraph_capture_size)",
        "a restart; longer capture at start; graph memory",
    )


def _graphs_at_load(picture: Picture) -> SettingChange | None:
    """CUDA graphs up to the load's batch of one rank."""
    load = picture.load
    return (
        None
        if load is None
        else SettingChange(setting="decode_graph_sizes", value=round(load.running / load.ranks))
    )


RULE = Rule("H303", "cuda-graph-uncovered-batch", "0.1.0", check, change=_graphs_at_load)
