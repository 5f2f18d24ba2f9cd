"""The per-request cost of a step beside what the roofline grants it."""

import msgspec

from stepline.facts.hardware import all_gpus
from stepline.model.measure.law import law_or_none
from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import sign
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    dominant = Threshold(
        0.5,
        "share of the step at the load",
        why="A step is called linear in the batch when the per-request part is at least half of it.",
        source="25 % at 64 on the healthy H200 server, 90 % at 32 on the fault capture",
    )
    above_roofline = Threshold(
        3.0,
        "times the roofline",
        why="Bytes and FLOPs do not explain it: kernels at a third of datasheet bandwidth cost "
        "three times the floor.",
        source="the founding capture reads 5 times (uniform routing)",
    )
    capacity_over_live = Threshold(
        8.0,
        "configured over live context",
        why="Work over the capacity is worth a suspicion: below, it costs less than eight times "
        "work over the live tokens, which other causes reach too.",
    )


class PerRequestCost(msgspec.Struct, frozen=True, kw_only=True):
    """b of the step law at the load."""

    slope_ms: float
    share: float
    """b·N over the predicted step at the load's batch."""
    expected_slope_ms: float | None
    """What the floor under uniform routing grows by for each further request: never too little."""
    granted_slope_ms: float | None
    """Slope in ms a request of the floor in use: strict with dummy weights, else expected; None without a floor."""
    sweep_ms: float
    """Time to read all of the GPU's memory once: no batch can need more bytes than that in a step."""
    sweep_gpu: str
    at_running: float

    @property
    def ratio(self) -> float | None:
        """Measured over roofline slope; None without a floor."""
        if self.expected_slope_ms is None or self.expected_slope_ms <= 0:
            return None
        return self.slope_ms / self.expected_slope_ms

    @property
    def dominant(self) -> bool:
        """True when most of the step is per-request cost."""
        return self.share >= T.dominant

    @property
    def beyond_memory(self) -> bool:
        """True when the per-request part takes longer than reading the whole memory: it cannot be bytes."""
        return self.slope_ms * self.at_running > self.sweep_ms


@sign
def per_request_cost(picture: Picture) -> PerRequestCost | None:
    """The per-request part of the step; None without a law or a load."""
    law = law_or_none(picture.law)
    if law is None or picture.step is None or picture.step.upper_bound or law.per_request_ms <= 0:
        return None
    running = picture.step.running
    gpu = picture.target.gpu
    slowest = gpu or max(all_gpus(), key=lambda known: known.memory_bytes / known.bandwidth_bytes_s)
    return PerRequestCost(
        slope_ms=law.per_request_ms,
        share=law.per_request_ms * running / law.step_ms(running),
        expected_slope_ms=None if picture.floors is None else picture.floors.expected_per_request_ms,
        granted_slope_ms=None if picture.floors is None else picture.floors.per_request_ms,
        sweep_ms=1000 * slowest.memory_bytes / slowest.bandwidth_bytes_s,
        sweep_gpu=slowest.name,
        at_running=running,
    )


@sign
def capacity_explains(picture: Picture) -> bool:
    """True when the configured context so far exceeds the live one that work over it could make the cost."""
    configured, live = picture.target.configured_context, picture.context
    return configured is not None and live is not None and configured >= T.capacity_over_live * live.tokens
