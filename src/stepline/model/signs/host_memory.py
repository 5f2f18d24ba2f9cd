"""Weights in host memory: each step reads them over the link between host and GPU."""

import msgspec

from stepline.evidence.origin import Origin
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import sign
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    link_bytes_s = Threshold(
        63e9,
        "B/s",
        why="What a host reaches over PCIe 5.0 with 16 lanes at most: offloaded bytes take at least this long.",
        source="PCI Express Base Specification 5.0: 32 GT/s a lane, 128b/130b",
    )


class OffloadedWeights(msgspec.Struct, frozen=True, kw_only=True):
    """Weights that cross the link in every step."""

    bytes: float
    """On one GPU, by the setting."""
    step_ms: float
    origin: Origin

    @property
    def least_ms(self) -> float:
        """The least time of the copy."""
        return self.bytes / T.link_bytes_s * 1e3

    @property
    def byte_s(self) -> float:
        """The rate if the step were the copy alone: no less crosses the link."""
        return self.bytes / self.step_ms * 1e3


@sign
def offloaded_weights(picture: Picture) -> OffloadedWeights | None:
    """Offloaded weights whose copy takes a tenth of the step at least; None without the setting or a step."""
    said, step = picture.run.server.offloaded_gib, picture.step
    if said is None or said.value <= 0 or step is None:
        return None
    found = OffloadedWeights(bytes=said.value * 1024**3, step_ms=step.measured_ms, origin=said.origin)
    return found if found.least_ms >= SHARED.worth * step.measured_ms else None
