"""What a decode step usually takes on a healthy server: the floor at achieved efficiency plus launches.

Never a bound. The terms are those of a server that does nothing wrong: weights and cache read at the
bandwidth engines reach, a fixed time per layer (launches, norms, small kernels), more of it per layer with
experts and per layer whose sums cross GPUs, and a little per sequence and layer. Where the measurement is a
TPOT of a server that also prefills, the share of prefill in a step comes on top.
"""

import functools
import tomllib
from pathlib import Path

import msgspec

from stepline import facts
from stepline.facts.hardware import Gpu
from stepline.model.architecture_parts import Architecture
from stepline.model.floor import decode_floor
from stepline.model.floor_prefill import prefill_floor_ms
from stepline.model.layout import Layout

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


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """The factors of one class of GPUs, fitted by `benchmarks/silicon.py`."""

    name: str
    gpus: tuple[str, ...]
    source: str
    factors: dict[str, float]
    low: float
    """Measured over typical, 10th percentile of the rows it was not fitted on."""
    high: float
    """The same, 90th percentile."""


class Typical(msgspec.Struct, frozen=True, kw_only=True):
    """The usual time of a step and the interval 80 % of real servers lie in."""

    ms: float
    low_ms: float
    high_ms: float
    source: str


def typical_step(
    architecture: Architecture,
    gpu: Gpu,
    layout: Layout,
    *,
    batch: float,
    context_tokens: float,
    kv_dtype: str = "auto",
    prefill_tokens: float = 0.0,
    prefill_sequences: float = 0.0,
) -> Typical | None:
    """Return the usual step, or None where no class of GPUs was calibrated.

    Args:
        architecture: The model.
        gpu: One of the equal GPUs.
        layout: How the model is spread.
        batch: Running sequences of one data-parallel rank.
        context_tokens: Live tokens of a sequence.
        kv_dtype: Type of cached keys and values.
        prefill_tokens: New tokens prefilled per decode step, on average; 0 for decode windows alone.
        prefill_sequences: Prompts they belong to.
    """
    calibration = _by_gpu().get(gpu.name)
    if calibration is None:
        return None
    terms = features(
        architecture,
        gpu,
        layout,
        batch=batch,
        context_tokens=context_tokens,
        kv_dtype=kv_dtype,
        prefill_tokens=prefill_tokens,
        prefill_sequences=prefill_sequences,
    )
    ms = sum(calibration.factors[name] * value for name, value in zip(TERMS, terms, strict=True))
    return Typical(
        ms=ms, low_ms=ms * calibration.low, high_ms=ms * calibration.high, source=calibration.source
    )


def features(
    architecture: Architecture,
    gpu: Gpu,
    layout: Layout,
    *,
    batch: float,
    context_tokens: float,
    kv_dtype: str = "auto",
    prefill_tokens: float = 0.0,
    prefill_sequences: float = 0.0,
) -> tuple[float, ...]:
    """Return the quantities the factors of `TERMS` multiply: two floors in ms, four counts, one floor."""
    floor = decode_floor(
        architecture,
        gpu,
        layout,
        batch=batch,
        context_tokens=context_tokens,
        routing="expected",
        kv_dtype=kv_dtype,
        collectives=False,
    )
    cache_ms = sum(part.ms for part in floor.components if part.name in {"kv read", "state"})
    prefill_ms = 0.0
    if prefill_tokens > 0:
        prefill_ms = prefill_share_ms(architecture, gpu, layout, prefill_tokens, prefill_sequences)
    return (
        max(floor.total_ms - cache_ms, 0.0),
        cache_ms,
        float(architecture.layers),
        float(sum(experts.layers for experts in architecture.body.experts)),
        float(architecture.layers if layout.tp > 1 else 0),
        architecture.layers * batch,
        prefill_ms,
    )


def prefill_share_ms(
    architecture: Architecture, gpu: Gpu, layout: Layout, tokens: float, sequences: float
) -> float:
    """Prefill floor that falls on one decode step when `sequences` prompts, a fraction, arrive in each."""
    one = tokens / sequences
    return sequences * layout.ranks * prefill_floor_ms(architecture, gpu, layout, one)


@functools.cache
def _by_gpu() -> dict[str, Calibration]:
    with (Path(facts.__file__).with_name("typical.toml")).open("rb") as file:
        classes = msgspec.convert(tomllib.load(file)["class"], list[Calibration])
    return {gpu: calibration for calibration in classes for gpu in calibration.gpus}
