"""What the shape of a part's kernels says of why it is slow: grid, waves, number a layer, type and rate."""

from collections.abc import Sequence

from stepline import units
from stepline.evidence.trace import TraceKernel
from stepline.model.picture.picture import Picture
from stepline.model.signs.kernel_paths import WIDE
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    many = Threshold(
        8.0,
        "kernels of a part in each layer",
        why="Engines fuse the small work of a layer into fewer.",
        source="SGLang 0.5.16 on an H200 launches 2 norms and 2 element-wise kernels a layer",
    )
    tiny = Threshold(
        16,
        "blocks",
        why="A grid that leaves nine SMs of ten idle on any data-centre GPU.",
        source="arithmetic: 108 SMs and more",
    )


def shape_says(picture: Picture, part: str, kernels: Sequence[TraceKernel]) -> tuple[str, ...]:
    """Sentences on the dearest kernels of a part; empty where grids, counts and types are unremarkable or not known."""
    if not kernels:
        return ()
    dearest = kernels[0]
    said = []
    if dearest.waves is not None and dearest.waves < 1:
        said.append(f"few blocks: the dearest kernel fills {units.percent(dearest.waves)} of the GPU")
    architecture = picture.target.architecture
    count = sum(kernel.per_step for kernel in kernels)
    if architecture is not None and count >= T.many * architecture.layers:
        said.append(f"many kernels in every layer: {count / architecture.layers:.3g} of {part}")
        small = [k for k in kernels if k.grid and k.grid[0] * k.grid[1] * k.grid[2] <= T.tiny]
        if sum(kernel.per_step for kernel in small) >= count / 2:
            said.append(f"tiny grids: half of them have at most {T.tiny} blocks")
    wide = [kernel for kernel in kernels if kernel.dtype in WIDE]
    if wide and sum(k.busy_ms for k in wide) >= sum(k.busy_ms for k in kernels) / 2:
        said.append(f"a format that widens: most of the time is in {wide[0].dtype} kernels")
    if any(kernel.context_multiple for kernel in kernels):
        said.append("grids follow the configured context, not the live one")
    return tuple(said)
