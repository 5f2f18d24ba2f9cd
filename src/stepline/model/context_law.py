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
from stepline.model.capacity import kv_bytes_per_token, weight_bytes_per_gpu
from stepline.model.picture import Target
from stepline.model.windows import DecodeWindow

SPAN = 4.0
"""Longest over shortest context that a slope needs: over less, kernel steps and noise of a few percent hide it."""


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


def context_laws(run: Run, windows: Sequence[DecodeWindow]) -> tuple[ContextLaw, ...]:
    """One law for each running batch that was seen over a wide span of contexts, logs before tables."""
    logged = [
        (float(w.running), w.pool_tokens / w.running, w.step_ms)
        for w in windows
        if w.pool_tokens and (run.server.page_tokens is None or run.server.page_tokens.value == 1)
    ]
    laws = [_fit(running, points, "decode windows (log)") for running, points in _by_running(logged)]
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


def _by_running(
    points: Sequence[tuple[float, float, float]],
) -> list[tuple[float, list[tuple[float, float]]]]:
    groups: dict[float, list[tuple[float, float]]] = defaultdict(list)
    for running, context, step in points:
        groups[running].append((context, step))
    return sorted(groups.items())


def _fit(running: float, points: Sequence[tuple[float, float]], instrument: str) -> ContextLaw | None:
    ordered = sorted(points)
    if len(ordered) < 2 or ordered[0][0] <= 0 or ordered[-1][0] < SPAN * ordered[0][0]:
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
