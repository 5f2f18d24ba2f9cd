"""What the GPU does while the engine has nothing to do."""

import itertools
import statistics

import msgspec

from stepline.evidence.gpu import GpuSample
from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.model.measure.gpu_use import working_gpus
from stepline.model.measure.timeline import Interval
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    sample_s = Threshold(
        0.5,
        "s",
        why="A sample this soon after the engine went idle saw its last step.",
        source="the period of this project's recordings",
    )
    min_samples = Threshold(
        3,
        "samples",
        why="Fewer say nothing of an idle engine.",
    )


class IdleUse(msgspec.Struct, frozen=True, kw_only=True):
    """Busy share of a serving GPU over samples in which the engine neither ran nor had waiting any request."""

    busy: float
    samples: int
    origin: Origin


def idle_use(run: Run) -> IdleUse | None:
    """The median; None without scrapes that show the engine idle, or with too few GPU samples in between."""
    spans = _idle_spans([scrape for scrape in run.metrics if scrape.time_s is not None])
    inside = [sample for sample in working_gpus(run.gpu_samples) if _within(sample, spans)]
    known = [sample.graphics_busy for sample in inside if sample.graphics_busy is not None]
    if len(known) < T.min_samples:
        return None
    return IdleUse(busy=statistics.median(known), samples=len(known), origin=inside[0].origin)


def _idle_spans(scrapes: list[EngineMetrics]) -> list[Interval]:
    """From the first to the last of scrapes that follow each other with no request and no token made in between."""
    spans: list[Interval] = []
    for before, after in itertools.pairwise(scrapes):
        start_s, end_s = before.time_s or 0.0, after.time_s or 0.0
        if not _idle(before, after):
            continue
        if spans and spans[-1].end_s == start_s:
            start_s = spans.pop().start_s
        spans.append(Interval(start_s, end_s))
    return spans


def _idle(before: EngineMetrics, after: EngineMetrics) -> bool:
    empty = all(scrape.running == 0 and scrape.queued == 0 for scrape in (before, after))
    return empty and before.generated_tokens == after.generated_tokens


def _within(sample: GpuSample, spans: list[Interval]) -> bool:
    """True for a sample whose whole time lies in one of the spans."""
    return sample.time_s is not None and any(
        span.start_s + T.sample_s <= sample.time_s <= span.end_s for span in spans
    )
