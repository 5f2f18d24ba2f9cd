"""By which path the kernels of a traced step compute: the framework's own operators, and wide number types.

All sums are over the table of a group's dearest kernels, so they are lower bounds.
"""

import re

import msgspec

from stepline.evidence.trace import StepGroup, TraceKernel
from stepline.facts import kernels
from stepline.model.picture.picture import Picture, floor_or_none
from stepline.model.picture.sign import sign
from stepline.model.roofline.architecture import Architecture
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    one_by_one = Threshold(
        8,
        "sequences",
        why="A kernel that is launched that often a layer is launched once for each.",
        source="layers of sound captures launch one kernel with one grid up to four times",
    )
    wide_bits = Threshold(
        24.0,
        "bits a weight",
        why="The checkpoint itself is in 32 bits: weights have 16 or 32, and mixtures of few wide layers.",
        source="arithmetic",
    )


OWNERS = {
    "attention": ("kv read",),
    "indexer": ("indexer",),
    "linear-attention": ("state",),
    "moe": ("moe experts", "shared expert", "router and small"),
}
"""Components that engines compute with kernels of their own, and the parts of the floor that they are."""
LOOSE = ("elementwise", "copy", "fill")
"""Components of the framework's kernels for which neither operator nor stack names an owner."""
WIDE = ("fp32", "tf32")
MATRICES = ("gemm", "moe")
VECTOR = re.compile("gemv")


class GenericPath(msgspec.Struct, frozen=True, kw_only=True):
    """A component computed operator by operator."""

    component: str
    generic_ms: float
    """Per step, in kernels that are the framework's own or a library's general ones."""
    total_ms: float
    """Per step, of the whole component."""
    dearest: TraceKernel


def generic_path(group: StepGroup) -> GenericPath | None:
    """The component with most time in general kernels; None where operators, stacks and chains name none.

    Work sized by the configured context is left out: that is a cause of its own.
    """
    found: list[GenericPath] = []
    for component in OWNERS:
        rows = [
            kernel
            for kernel in group.top
            if kernel.component == component
            and kernel.found_by in ("operator", "stack", "chain")
            and kernel.context_multiple is None
        ]
        if rows:
            found.append(
                GenericPath(
                    component=component,
                    generic_ms=sum(kernel.busy_ms for kernel in rows),
                    total_ms=group.component_ms(component),
                    dearest=max(rows, key=lambda kernel: kernel.busy_ms),
                )
            )
    return max(found, key=lambda path: path.generic_ms, default=None)


def loose_ms(group: StepGroup) -> float:
    """Time per step in the framework's own kernels that nothing assigns to a component."""
    return sum(kernel.busy_ms for kernel in _loose(group))


def _loose(group: StepGroup) -> list[TraceKernel]:
    return [
        kernel
        for kernel in group.top
        if kernel.component in LOOSE and kernels.framework(kernel.name) and kernel.context_multiple is None
    ]


def layered_ms(picture: Picture, group: StepGroup) -> float:
    """Time in ms a step of unassigned kernels of several kinds that run in every layer; else 0, as without the model.

    Sampling and the step's own bookkeeping run once a step, and one kernel alone is no part taken to pieces.
    """
    architecture = picture.target.architecture
    if architecture is None:
        return 0.0
    single = {id(kernel) for kernel in one_by_one(picture, group)}
    rows = [
        kernel
        for kernel in _loose(group)
        if kernel.per_step >= architecture.layers and id(kernel) not in single
    ]
    return sum(kernel.busy_ms for kernel in rows) if len({kernel.name for kernel in rows}) > 1 else 0.0


def one_by_one(picture: Picture, group: StepGroup) -> tuple[TraceKernel, ...]:
    """Kernels that every layer launches once (or as often) for each sequence, dearest first.

    Empty without model or batch, and where a few sequences could be told from the parts of a layer by nothing.
    """
    architecture = picture.target.architecture
    if architecture is None or group.batch is None or group.batch < T.one_by_one:
        return ()
    each = architecture.layers * group.batch
    rows = [kernel for kernel in group.top if kernel.per_step >= each and kernel.per_step % each < 1]
    return tuple(sorted(rows, key=lambda kernel: -kernel.busy_ms))


@sign
def component_floor_ms(picture: Picture, component: str, batch: int | None) -> float | None:
    """The floor of a component at the traced batch; None without model, GPU, context or batch."""
    if batch is None or picture.floors is None:
        return None
    floor = picture.floor_at(float(batch), picture.floors.used)
    return (
        None if floor is None else sum(part.ms for part in floor.components if part.name in OWNERS[component])
    )


@sign
def weights_floor_ms(picture: Picture, batch: int | None) -> float | None:
    """The least time in which all weights of a step are read in the checkpoint's type; None without model or GPU."""
    floor = floor_or_none(picture.target, float(batch or 1), 1.0, "strict")
    if floor is None:
        return None
    return sum(part.ms for part in floor.components if part.name not in OWNERS["attention"])


class WideProducts(msgspec.Struct, frozen=True, kw_only=True):
    """Matrix products in 32 bits."""

    wide_ms: float
    """Per step."""
    matrices_ms: float
    """Per step, all matrix products of weights."""
    dearest: str
    """Name of the kernel with most of them; empty without any."""

    @property
    def narrow_ms(self) -> float:
        """Per step, in the other matrix products."""
        return self.matrices_ms - self.wide_ms


def wide_products(group: StepGroup) -> WideProducts:
    """Products of weights that run in fp32 or tf32, by the kernels' names.

    Products sized by the configured context multiply no weights and are a cause of their own. Nor does a product with
    a single row where several requests run: that is attention, one request after the other.
    """
    products = [kernel for kernel in group.top if kernel.component in MATRICES]
    sized_ms = sum(kernel.busy_ms for kernel in products if kernel.context_multiple is not None)
    rows = [
        kernel
        for kernel in products
        if kernel.dtype in WIDE
        and kernel.context_multiple is None
        and (group.batch == 1 or not VECTOR.search(kernel.name))
    ]
    return WideProducts(
        wide_ms=sum(kernel.busy_ms for kernel in rows),
        matrices_ms=sum(group.component_ms(name) for name in MATRICES) - sized_ms,
        dearest=max(((kernel.busy_ms, kernel.name) for kernel in rows), default=(0.0, ""))[1],
    )


def weight_bits(architecture: Architecture) -> float:
    """Mean stored bits of the weights that a step multiplies."""
    parts = [(m.total, m.format.bits) for m in architecture.body.matrices if m.gemm]
    parts += [(e.params * e.count * e.layers, e.format.bits) for e in architecture.body.experts]
    total = sum(params for params, _ in parts)
    return sum(params * bits for params, bits in parts) / total if total else 0.0
