"""What a decode step usually takes on a healthy server. Never a bound.

Where somebody measured this GPU's kernels (a calibration) and the model is made of such kernels, it is their sum
(`calibrated`). Else it is the floor at the efficiency that public measurements of the GPU's class show: weights and
cache read at the bandwidth engines reach, a fixed time per layer (launches, norms, small kernels), more of it per
layer with experts and per layer whose sums cross GPUs, and a little per sequence and layer. Where the measurement
is a TPOT of a server that also prefills, the share of prefill in a step comes on top.
"""

import functools
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from stepline import facts
from stepline.evidence.calibration import Calibration
from stepline.facts.calibrations import measured_gpu, shipped_calibration
from stepline.facts.hardware import Gpu
from stepline.model.roofline.calibration_lines import Rates
from stepline.model.roofline.decode_floor import decode_floor
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.kernel_sum import calibrated_step_ms, why_not
from stepline.model.roofline.prefill_floor import prefill_floor_ms

TERMS = (
    "weights_floor",
    "cache_floor",
    "ms_per_layer",
    "ms_per_expert_layer",
    "ms_per_reduced_layer",
    "ms_per_layer_and_sequence",
    "prefill_floor",
)
"""Factors on floors, and times; in the order of `features`."""


class ClassFit(msgspec.Struct, frozen=True, kw_only=True):
    """The factors of one class of GPUs, fitted by `benchmarks/silicon.py`."""

    name: str
    gpus: tuple[str, ...]
    source: str
    factors: dict[str, float]
    low: float
    """Measured over typical, 10th percentile of the rows it was not fitted on."""
    high: float
    """Measured over typical, 90th percentile of the rows it was not fitted on."""


class Typical(msgspec.Struct, frozen=True, kw_only=True):
    """The usual time of a step and the interval 80 % of real servers lie in."""

    ms: float
    low_ms: float
    high_ms: float
    source: str


def typical_step(
    deployment: Deployment,
    *,
    batch: float,
    context_tokens: float,
    prefill_tokens: float = 0.0,
    prefill_sequences: float = 0.0,
    calibration: Calibration | None = None,
) -> Typical | None:
    """Return the usual step, or None where neither this GPU nor its class was measured.

    Args:
        deployment: The model, its GPUs and the type of its cache.
        batch: Running sequences of one data-parallel rank.
        context_tokens: Live tokens of a sequence.
        prefill_tokens: New tokens prefilled per decode step, on average; 0 for decode windows alone.
        prefill_sequences: Prompts they belong to.
        calibration: Measurements of a machine; used when it is this GPU, in place of those that come with stepline.

    Raises:
        UnknownFact: an impossible layout or an unknown cache type.
    """
    gpu = deployment.gpu
    calibration = calibration_of(gpu, calibration)
    rates = None if calibration is None else Rates(calibration)
    reason = None if rates is None else why_not(deployment, rates)
    if calibration is not None and rates is not None and reason is None:
        ms = calibrated_step_ms(deployment, rates, batch=batch, context_tokens=context_tokens)
        if prefill_tokens > 0 and rates.peak_bf16:
            floor_ms = prefill_share_ms(deployment, prefill_tokens, prefill_sequences)
            ms += floor_ms * gpu.peak("bf16") / rates.peak_bf16
        return _typical(ms, *calibrated_interval(), source_of(calibration))
    fit = class_fit(gpu)
    if fit is None:
        return None
    terms = features(
        deployment,
        batch=batch,
        context_tokens=context_tokens,
        prefill_tokens=prefill_tokens,
        prefill_sequences=prefill_sequences,
    )
    ms = sum(fit.factors[name] * value for name, value in zip(TERMS, terms, strict=True))
    because = f"; the calibration does not describe it: {reason}" if reason else ""
    return _typical(ms, fit.low, fit.high, fit.source + because)


def _typical(ms: float, low: float, high: float, source: str) -> Typical:
    return Typical(ms=ms, low_ms=ms * low, high_ms=ms * high, source=source)


def calibration_of(gpu: Gpu, own: Calibration | None) -> Calibration | None:
    """A machine's own calibration where it is of this GPU, else the one that comes with stepline; None without one."""
    return own if own is not None and measured_gpu(own) == gpu.name else shipped_calibration(gpu.name)


def calibrated_interval() -> tuple[float, float]:
    """Measured over the sum of kernels: (10th, 90th) percentile of real servers."""
    interval = _facts()["calibrated"]
    return interval["low"], interval["high"]


def class_fit(gpu: Gpu) -> ClassFit | None:
    """The factors of the GPU's class; None where no class was fitted."""
    return _by_gpu().get(gpu.name)


def source_of(calibration: Calibration) -> str:
    """Where a calibrated time comes from, in words."""
    machine = calibration.machine
    return f"the sum of its kernels as measured on {machine.gpu}, torch {machine.torch}, {calibration.date}"


def features(
    deployment: Deployment,
    *,
    batch: float,
    context_tokens: float,
    prefill_tokens: float = 0.0,
    prefill_sequences: float = 0.0,
) -> tuple[float, ...]:
    """Return the quantities the factors of `TERMS` multiply: two floors in ms, four counts, one floor."""
    floor = decode_floor(
        deployment, batch=batch, context_tokens=context_tokens, routing="expected", collectives=False
    )
    architecture, layout = deployment.architecture, deployment.layout
    cache_ms = sum(part.ms for part in floor.components if part.name in {"kv read", "state"})
    prefill_ms = 0.0
    if prefill_tokens > 0:
        prefill_ms = prefill_share_ms(deployment, prefill_tokens, prefill_sequences)
    return (
        max(floor.total_ms - cache_ms, 0.0),
        cache_ms,
        float(architecture.layers),
        float(sum(experts.layers for experts in architecture.body.experts)),
        float(architecture.layers if layout.tp > 1 else 0),
        architecture.layers * batch,
        prefill_ms,
    )


def prefill_share_ms(deployment: Deployment, tokens: float, sequences: float) -> float:
    """Prefill floor that falls on one decode step when `sequences` prompts, a fraction, arrive in each."""
    one = tokens / sequences
    return sequences * deployment.layout.ranks * prefill_floor_ms(deployment, one)


@functools.cache
def _facts() -> dict[str, Any]:
    return tomllib.loads(Path(facts.__file__).with_name("typical.toml").read_text())


@functools.cache
def _by_gpu() -> dict[str, ClassFit]:
    classes = msgspec.convert(_facts()["class"], list[ClassFit])
    return {gpu: fit for fit in classes for gpu in fit.gpus}
