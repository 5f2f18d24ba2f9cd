"""Floors of what a trace shows: of a part of the step, and of a kernel whose operands are known.

A part of a trace gets the floor of what only its kernels can do. The router and a shared expert may run as a GEMM or
inside the experts' kernels, so no part has them; what the step must do beyond its parts stays in the floor of the step.
"""

from collections.abc import Iterable, Mapping

import msgspec

from stepline.evidence.trace import TraceKernel
from stepline.facts.hardware import Gpu
from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import sign

PARTS: dict[str, tuple[str, ...]] = {
    "attention": ("kv read",),
    "indexer": ("indexer",),
    "linear-attention": ("state",),
    "moe": ("moe experts",),
    "gemm": ("attention weights", "dense ffn", "head"),
}
"""Components of a trace, and the components of the floor that are theirs."""
COMMUNICATION = "communication"
"""Its floor is the latency of the step's all-reduces: it reads and multiplies nothing that is counted."""


class PartFloor(msgspec.Struct, frozen=True, kw_only=True):
    """The least that a part of the traced step reads, multiplies and takes, on one GPU."""

    component: str
    busy_ms: float
    bytes: float
    flops: float
    floor_ms: float


@sign
def part_floors(picture: Picture) -> tuple[PartFloor, ...]:
    """Parts with a floor, dearest first; none without a trace, its batch, model, GPU or live context.

    A part that was faster than its floor is left out: its work runs under another part's name.
    """
    traced = picture.traced
    if traced is None or traced.group.batch is None or picture.floors is None:
        return ()
    floor = picture.floor_at(float(traced.group.batch), picture.floors.used)
    if floor is None:
        return ()
    found = [
        PartFloor(
            component=COMMUNICATION,
            busy_ms=traced.group.component_ms(COMMUNICATION),
            bytes=0.0,
            flops=0.0,
            floor_ms=floor.collectives.ms,
        )
    ]
    for component, names in PARTS.items():
        parts = [part for part in floor.components if part.name in names]
        found.append(
            PartFloor(
                component=component,
                busy_ms=traced.group.component_ms(component),
                bytes=sum(part.bytes for part in parts),
                flops=sum(part.flops for part in parts),
                floor_ms=sum(part.ms for part in parts),
            )
        )
    told = [part for part in found if 0 < part.floor_ms <= part.busy_ms]
    return tuple(sorted(told, key=lambda part: -part.busy_ms))


def kernel_floor_ms(kernel: TraceKernel, gpu: Gpu) -> float | None:
    """The least time a step for what a kernel's operands hold; None where the trace does not tell them.

    None also where the kernel was faster than memory: what it read came from a cache. A kernel whose name tells no
    type is held against the GPU's fastest, so that the floor stays a bound.
    """
    if kernel.byte_s is None:
        return None
    peak = gpu.peak_flops.get(kernel.dtype or "", max(gpu.peak_flops.values()))
    share = max(kernel.byte_s / gpu.bandwidth_bytes_s, (kernel.flop_s or 0.0) / peak)
    return None if share > 1 else share * kernel.busy_ms


@sign
def peaks(picture: Picture) -> Mapping[str, float]:
    """Dense FLOP/s of the GPU in each type that the model's products can run in; empty without model or GPU."""
    model, gpu = picture.target.architecture, picture.target.gpu
    if model is None or gpu is None:
        return {}
    formats: Iterable[str] = (
        *(matrix.format.math for matrix in model.body.matrices if matrix.gemm),
        *(experts.format.math for experts in model.body.experts),
    )
    return {math: gpu.peak(math) for math in sorted(set(formats))}
