"""H303 cuda-graph-uncovered-batch.

What it means:
    The running batch exceeds the largest captured decode graph, so those steps run eagerly. No line warns of it.

Why it costs:
    The step jumps from graph replay to host launch time, service slows, requests pile up and the batch stays large:
    the state holds itself.

Evidence needed:
    Decode steps on both sides of the captured sizes, or the captured sizes and the running batch.

How it decides:
    Lines with a graph at smaller batches and without at larger ones, and steps over 10 % above the law of the covered
    batches: confirmed. Only sizes and running batch: suspected.

What would prove it wrong:
    With larger graphs captured, the step at that batch stays.

What to try:
    Raise `--cuda-graph-max-bs` (SGLang) or `max_cudagraph_capture_size` (vLLM) above the running batch; a restart and
    graph memory.

References:
    docs/identifiability.md
"""

from stepline import units
from stepline.findings.cite import gain_from
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
from stepline.model.assess import law_or_none
from stepline.model.host import beyond_graphs, gpu_busy, graph_use
from stepline.model.law import LawPoint
from stepline.model.picture import Picture
from stepline.model.predict import with_launches

JUMP = 1.1
"""Step over the covered law from which it counts: windows of one level spread by under 2 % on graph steps."""

GPU_BUSY = 0.85
"""See H302: from here graphs would save little."""


def check(picture: Picture) -> Outcome:
    """Decide whether batches above the captured sizes run eagerly and pay for it."""
    law = law_or_none(picture.law)
    if law is not None and law.eager:
        worst = max(law.eager, key=lambda point: point.running)
        ratio = worst.step_ms / law.step_ms(worst.running)
        busy = gpu_busy(picture)
        if busy is not None and busy.share >= GPU_BUSY:
            return Clear(f"{worst.running:g} run eagerly, but the GPU is {units.percent(busy.share)} busy")
        if ratio < JUMP:
            return Clear(
                f"{worst.running:g} run eagerly at {units.times(ratio)} the covered law: no cost worth naming"
            )
        return _measured(picture, worst, law.step_ms(worst.running))
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
    if not beyond_graphs(picture):
        return Clear(f"graphs are captured up to {largest}, {running:g} run, and no line above that is eager")
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
        tries=(_raise(running),),
        proof=Proof(
            "stepline compare BEFORE AFTER, recorded with graphs as they are and above the batch",
            60.0,
        ),
    )


def _measured(picture: Picture, eager: LawPoint, covered_ms: float) -> Fired:
    prediction = with_launches(
        picture, covered_ms, 0.9 * covered_ms, 1.3 * covered_ms, "the covered step law"
    )
    gain = gain_from(prediction)
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
        tries=(_raise(eager.running),),
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


RULE = Rule("H303", "cuda-graph-uncovered-batch", "0.1.0", check)
