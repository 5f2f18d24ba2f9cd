"""SM clocks under load beside the full one, and why they are lower."""

import statistics
from collections.abc import Sequence

import msgspec

from stepline.evidence.gpu import GpuSample
from stepline.evidence.origin import Origin
from stepline.model.measure.gpu_use import T as GPU_USE
from stepline.model.measure.gpu_use import working_gpus
from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import sign

POWER_LIMIT = 0x4
"""NVML's bit for the software power cap: set on healthy servers in a third of the samples, at no cost to decode."""
HELD_BACK = {
    0x2: "a clock setting",
    0x8: "a hardware slowdown",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "the power supply's brake",
}
"""NVML's other bits that mean less than the full clock (`nvmlClocksEventReason*`)."""


class Clocks(msgspec.Struct, frozen=True, kw_only=True):
    """The slowest of the GPUs that served, while it was busy."""

    sm_mhz: float
    full_mhz: float
    full_source: str
    samples: int
    stated: bool
    """True for figures that somebody wrote down, without a time and perhaps of an idle GPU."""
    held_back_share: float | None
    """Share of the samples with a reason other than the power cap; None where no sample tells reasons."""
    power_limit_share: float | None
    reasons: tuple[str, ...]
    temperature_c: float | None
    origin: Origin

    @property
    def share(self) -> float:
        """SM clock over the full one."""
        return self.sm_mhz / self.full_mhz


@sign
def clocks(picture: Picture) -> Clocks | None:
    """Medians over busy samples of the GPU with the lowest clock; None where clock, load or full clock is not known."""
    busy = [
        sample for sample in working_gpus(picture.run.gpu_samples) if sample.sm_clock_mhz and _loaded(sample)
    ]
    by_gpu = [[sample for sample in busy if sample.gpu == gpu] for gpu in {sample.gpu for sample in busy}]
    found = [
        _of_one(picture, mine)
        for mine in by_gpu
        if mine[0].time_s is None or len(mine) >= GPU_USE.min_samples
    ]
    return min((one for one in found if one is not None), key=lambda one: one.share, default=None)


def _loaded(sample: GpuSample) -> bool:
    """True while the GPU works; a figure without a time is one that somebody stated of a load."""
    return sample.time_s is None if sample.graphics_busy is None else sample.graphics_busy >= GPU_USE.working


def _of_one(picture: Picture, samples: Sequence[GpuSample]) -> Clocks | None:
    gpu = picture.target.gpu
    seen = max(sample.sm_clock_mhz or 0.0 for sample in picture.run.gpu_samples)
    known = None if gpu is None else gpu.boost_mhz
    stated = samples[0].time_s is None
    if known is None and stated:
        return None
    full = max(seen, known or 0.0)
    told = [sample.clock_event_reasons for sample in samples if sample.clock_event_reasons is not None]
    lowered = [bits for bits in told if any(bits & bit for bit in HELD_BACK)]
    hottest = [sample.temperature_c for sample in samples if sample.temperature_c is not None]
    return Clocks(
        sm_mhz=statistics.median(sample.sm_clock_mhz or 0.0 for sample in samples),
        full_mhz=full,
        full_source="seen in this recording" if seen >= (known or 0.0) else "by the data sheet",
        samples=len(samples),
        stated=stated,
        held_back_share=len(lowered) / len(told) if told else None,
        power_limit_share=sum(1 for bits in told if bits & POWER_LIMIT) / len(told) if told else None,
        reasons=tuple(words for bit, words in HELD_BACK.items() if any(bits & bit for bits in lowered)),
        temperature_c=max(hottest, default=None),
        origin=samples[0].origin,
    )
