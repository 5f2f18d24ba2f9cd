"""The usual time of each part of a decode step, by the names a trace gives its parts.

Where the GPU was calibrated a part is the sum of its kernels as measured alone. Where only its class was fitted, the
part takes the class's factor on its floor and its share of what a layer costs beside bytes, by number of kernels.
"""

from collections.abc import Mapping

from stepline.evidence.calibration import Calibration
from stepline.model.roofline.calibration_lines import Rates
from stepline.model.roofline.decode_floor import decode_floor
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.kernel_sum import SMALL_PER_LAYER, calibrated_parts_ms, why_not
from stepline.model.roofline.typical import Typical, calibration_of, class_fit, source_of
from stepline.threshold import Threshold


class T:
    """Thresholds of this module: how far a part of a sound step may lie from its usual time."""

    streamed = Threshold(
        1.3,
        "times the products measured alone",
        why="What products of weights take at most where their kernels were calibrated.",
        source="0.96 to 1.00 times on ten H200 captures with sound products (SGLang 0.5.16, plain PyTorch)",
    )
    attended = Threshold(
        2.0,
        "times attention or exchange measured alone",
        why="Backends differ by this much on one cache; so do links under load.",
        source="attention 0.75 to 0.96 times on ten sound H200 captures, NCCL and one-shot exchange 1.6 to 1.7",
    )
    small = Threshold(
        4.0,
        "times the small kernels measured alone",
        why="A norm of the framework takes several kernels' time where a fused one takes one's.",
        source="3.2 to 3.3 times for PyTorch's norms on the H200, 0.6 to 0.9 for SGLang's",
    )
    fitted = Threshold(
        1.5,
        "power of the class's interval",
        why="A part is less sure than the step, in which errors partly cancel.",
    )
    least = Threshold(
        0.5,
        "times the usual time",
        why="Low end of each part.",
        source="0.75 times for attention on the H200 captures, 0.6 for SGLang's small kernels",
    )


SMALL = ("norm", "elementwise", "kv-write", "sampling")

FLOOR_PARTS: dict[str, tuple[str, ...]] = {
    "attention": ("kv read",),
    "moe": ("moe experts",),
    "gemm": ("attention weights", "dense ffn", "head"),
}
"""Parts of a trace whose bytes a class's factors cover, and the components of the floor that are theirs."""
KERNELS_PER_LAYER = {**SMALL_PER_LAYER, "attention": SMALL_PER_LAYER["attention"] + 1, "gemm": 4}
"""Query, key and value; output; gate and up; down: four products a layer, and attention with its merge."""


def typical_parts(
    deployment: Deployment,
    *,
    batch: float,
    context_tokens: float,
    calibration: Calibration | None = None,
) -> Mapping[str, Typical]:
    """The usual time of a step's parts; a part that neither a calibration nor a fit describes is not there.

    Arguments as of `typical_step`.

    Raises:
        UnknownFact: an impossible layout or an unknown cache type.
    """
    architecture, gpu, layout = deployment.architecture, deployment.gpu, deployment.layout
    known = calibration_of(gpu, calibration)
    rates = None if known is None else Rates(known)
    if known is not None and rates is not None and why_not(deployment, rates) is None:
        parts = calibrated_parts_ms(deployment, rates, batch=batch, context_tokens=context_tokens)
        return {
            name: _part(ms, _calibrated_high(name), source_of(known)) for name, ms in parts.items() if ms > 0
        }
    fit = class_fit(gpu)
    if fit is None:
        return {}
    floor = decode_floor(
        deployment, batch=batch, context_tokens=context_tokens, routing="expected", collectives=False
    )
    floors = {
        part: sum(one.ms for one in floor.components if one.name in names)
        for part, names in FLOOR_PARTS.items()
    }
    kernel_ms = fit.factors["ms_per_layer"] * architecture.layers / sum(KERNELS_PER_LAYER.values())
    expert_layers = sum(experts.layers for experts in architecture.body.experts)
    beside = {part: count * kernel_ms for part, count in KERNELS_PER_LAYER.items()}
    beside["moe"] = fit.factors["ms_per_expert_layer"] * expert_layers
    if layout.tp > 1:
        beside["communication"] = fit.factors["ms_per_reduced_layer"] * architecture.layers
    factors = {"attention": fit.factors["cache_floor"]}
    times = {
        part: factors.get(part, fit.factors["weights_floor"]) * floors.get(part, 0.0) + beside.get(part, 0.0)
        for part in {*beside, *floors}
    }
    wide = fit.high**T.fitted
    highs = {part: max(wide, T.small) if part in SMALL else wide for part in times}
    highs["gemm"] = fit.high  # products are most of the rows that were fitted
    return {part: _part(ms, highs[part], fit.source) for part, ms in sorted(times.items()) if ms > 0}


def _calibrated_high(part: str) -> float:
    if part in SMALL:
        return T.small
    return T.streamed if part == "gemm" else T.attended


def _part(ms: float, high: float, source: str) -> Typical:
    return Typical(ms=ms, low_ms=ms * T.least, high_ms=ms * high, source=source)
