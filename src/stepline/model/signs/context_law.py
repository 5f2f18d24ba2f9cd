"""How the step grows with the tokens a sequence attends to, at one running batch: c of t = a + b·N + c·N·L.

Reading the KV cache costs time in proportion to context, and so do kernels that read it badly. The two are told apart
without knowing the GPU: on one machine the weights and the cache come from the same memory, so a sound kernel reads
both at much the same rate.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from stepline.errors import UnknownFact
from stepline.evidence.run import Run
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.measure.windows import DecodeWindow
from stepline.model.picture.picture import Picture, Target
from stepline.model.picture.sign import sign
from stepline.model.roofline.kv_capacity import kv_bytes_per_token, weight_bytes_per_gpu
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    span = Threshold(
        4.0,
        "longest over shortest context",
        why="What a slope needs: over less, kernel steps and noise of a few percent hide it.",
    )
    slower = Threshold(
        2.0,
        "cache over weight read time per byte",
        why="Attention is at fault.",
        source="a sound backend reads its cache 0.9 to 1.1 times as slowly (FlashInfer, H100, 1k to "
        "32k tokens); at 24k tokens on an H200 eight splits read it 10 times as slowly at 1 "
        "running and 2.7 times at 4, one split 19 times; two public reports 6 and 10 times "
        "(sglang 27786 and 2271)",
    )


class ContextLaw(msgspec.Struct, frozen=True, kw_only=True):
    """The step against live context at one running batch, by one instrument."""

    running: float
    instrument: str
    at_zero_ms: float
    per_ktoken_ms: float
    """Growth of the step for each further thousand tokens of every sequence."""
    shortest: float
    longest: float
    points: int
    first_ms: float
    last_ms: float


class CacheRead(msgspec.Struct, frozen=True, kw_only=True):
    """The rate at which a step reads its KV cache beside the rate at which it reads its weights."""

    cache_bytes_s: float
    weight_bytes_s: float

    @property
    def slower(self) -> float:
        """How many times slower the cache is read."""
        return self.weight_bytes_s / self.cache_bytes_s


def context_laws(
    run: Run, windows: Sequence[DecodeWindow], *, by_client: bool = False
) -> tuple[ContextLaw, ...]:
    """One law for each running batch that was seen over a wide span of contexts, logs before tables.

    A pool that counts whole pages does not tell contexts well enough; a client counts its own streams' tokens.
    """
    exact = by_client or run.server.page_tokens is None or run.server.page_tokens.value == 1
    seen = [
        (float(w.running), w.pool_tokens / w.running, w.step_ms) for w in windows if w.pool_tokens and exact
    ]
    instrument = "streams of one batch (client)" if by_client else "decode windows (log)"
    laws = [_fit(running, points, instrument) for running, points in _by_running(seen)]
    stated = [
        (row.running, row.context_tokens, row.step_ms or 1000 * row.running / (row.tok_s or math.nan))
        for row in run.step_rows
        if row.context_tokens is not None and (row.step_ms or row.tok_s)
    ]
    stated += [
        (level.concurrency, level.input_tokens, 1000 / level.tok_s)
        for level in run.levels
        if level.concurrency == 1 and level.input_tokens is not None and level.tok_s
    ]
    laws += [
        _fit(running, points, "rates as stated for a context") for running, points in _by_running(stated)
    ]
    return tuple(law for law in laws if law is not None)


def cache_read(law: ContextLaw, target: Target) -> CacheRead | None:
    """Both read rates of a law; None without the model, or where the step at zero context is not weights alone.

    The step without context holds launches too, so the weight rate is at least what is returned: the cache is read
    at least as many times slower as said.
    """
    if target.architecture is None or law.per_ktoken_ms <= 0 or law.at_zero_ms <= 0:
        return None
    try:
        token = kv_bytes_per_token(target.architecture, layout=target.layout, kv_dtype=target.kv_dtype)
        weights = weight_bytes_per_gpu(target.architecture, target.layout)
    except UnknownFact:
        return None
    if target.architecture.body.experts:
        return None  # how many experts a step reads is not known from here
    return CacheRead(
        cache_bytes_s=token * law.running * 1000 / (law.per_ktoken_ms / 1000),
        weight_bytes_s=weights / (law.at_zero_ms / 1000),
    )


@sign
def law_at_load(picture: Picture) -> ContextLaw | None:
    """The law at the load's batch: fitted there, or from the load's own step over what is left without context.

    The step without context comes from the largest batch below the load's that was seen over a span of contexts; more
    requests only add to it, so the cache's share is at most what is returned.
    """
    windows = (*picture.windows.usable, *picture.probed)
    laws = context_laws(picture.run, windows, by_client=picture.windows.by_client)
    step, context = picture.step, picture.context
    if step is None or context is None:
        return max(laws, key=lambda law: law.per_ktoken_ms * law.longest, default=None)
    own = [law for law in laws if law.running == step.running]
    if own:
        return own[0]
    below = [law for law in laws if law.running < step.running and context.tokens >= T.span * law.shortest]
    if not below or step.upper_bound:
        return None
    base = max(below, key=lambda law: law.running)
    return ContextLaw(
        running=step.running,
        instrument=f"{base.instrument}, the part without context from {base.running:g} running",
        at_zero_ms=base.at_zero_ms,
        per_ktoken_ms=1000 * (step.measured_ms - base.at_zero_ms) / context.tokens,
        shortest=base.shortest,
        longest=context.tokens,
        points=base.points + 1,
        first_ms=base.first_ms,
        last_ms=step.measured_ms,
    )


class AtMost(msgspec.Struct, frozen=True, kw_only=True):
    """What reading the cache can cost at the load, by the slope in context of a smaller batch."""

    law: ContextLaw
    running: float
    cost_ms: float
    """Of the load's step, as if every further request added its share: SMs that idle at the smaller batch make it
    less."""
    step_ms: float

    @property
    def matters(self) -> bool:
        """True when it may be a tenth of the step."""
        return self.cost_ms >= SHARED.worth * self.step_ms


@sign
def cache_at_most(picture: Picture) -> AtMost | None:
    """The most that the cache costs at the load; None where no smaller batch was seen over a span of contexts."""
    step, context = picture.step, picture.context
    windows = (*picture.windows.usable, *picture.probed)
    laws = context_laws(picture.run, windows, by_client=picture.windows.by_client)
    if step is None or context is None:
        return None
    below = [law for law in laws if law.running < step.running]
    if not below:
        return None
    law = max(below, key=lambda law: law.running)
    slope_ms = max(0.0, law.per_ktoken_ms) * step.running / law.running
    return AtMost(
        law=law, running=step.running, cost_ms=slope_ms * context.tokens / 1000, step_ms=step.measured_ms
    )


class SlowCache(msgspec.Struct, frozen=True, kw_only=True):
    """Attention at the load, when it reads its cache too slowly."""

    law: ContextLaw
    read: CacheRead
    excess_ms: float
    """What a step would save if the cache came as fast as the weights."""

    @property
    def matters(self) -> bool:
        """True when it is slow beyond what sound backends show and costs a tenth of the step."""
        return self.read.slower >= T.slower and self.excess_ms >= SHARED.worth * self.law.last_ms


@sign
def cache_at_load(picture: Picture) -> SlowCache | None:
    """How slowly the cache is read at the load; None without a span of contexts or without the model."""
    law = law_at_load(picture)
    read = None if law is None else cache_read(law, picture.target)
    if law is None or read is None:
        return None
    excess = law.per_ktoken_ms * law.longest / 1000 * (1 - 1 / read.slower)
    return SlowCache(law=law, read=read, excess_ms=excess)


def _by_running(
    points: Sequence[tuple[float, float, float]],
) -> list[tuple[float, list[tuple[float, float]]]]:
    groups: dict[float, list[tuple[float, float]]] = defaultdict(list)
    for running, context, step in points:
        groups[running].append((context, step))
    return sorted(groups.items())


def _fit(running: float, points: Sequence[tuple[float, float]], instrument: str) -> ContextLaw | None:
    ordered = sorted(points)
    if len(ordered) < 2 or ordered[0][0] <= 0 or ordered[-1][0] < T.span * ordered[0][0]:
        return None
    mean_l = statistics.fmean(context for context, _ in ordered)
    mean_t = statistics.fmean(step for _, step in ordered)
    spread = sum((context - mean_l) ** 2 for context, _ in ordered)
    slope = sum((context - mean_l) * (step - mean_t) for context, step in ordered) / spread
    return ContextLaw(
        running=running,
        instrument=instrument,
        at_zero_ms=mean_t - slope * mean_l,
        per_ktoken_ms=1000 * slope,
        shortest=ordered[0][0],
        longest=ordered[-1][0],
        points=len(ordered),
        first_ms=ordered[0][1],
        last_ms=ordered[-1][1],
    )
