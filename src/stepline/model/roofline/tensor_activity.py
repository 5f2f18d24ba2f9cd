"""How busy the tensor cores should be in a decode step, from FLOPs padded to whole tiles.

Matrix units work on tiles: one row costs as much as 8 or 16 of them on Hopper's and Blackwell's warp-level
instructions and 64 on Hopper's warp-group ones (PTX ISA 8.7, mma and wgmma shapes). A monitor of the tensor
pipe sees the padded work, so "under 1 %" may be all a healthy step can show.
"""

import math

import msgspec

from stepline.model.roofline.architecture_parts import ATTENTION_SIDE, Architecture
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.forward_cost import Routing, distinct_experts, ways
from stepline.model.roofline.layout import Layout, check_layout

NARROW_TILES, WIDE_TILE = (8, 16), 64


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """Expected share of the bf16 peak that the tensor pipe spends on a step."""

    low: float
    """One token's experts, rows padded to the narrowest tile."""
    high: float
    """Uniformly routed experts, every product's rows padded to 64."""
    share_by_tile: dict[int, float]
    """By rows of a tile: one token's experts at 8 and 16, uniform routing at 64."""


def tensor_activity(deployment: Deployment, *, batch: float, step_ms: float) -> Activity:
    """Return what a monitor of the tensor pipe should show while steps of `step_ms` decode `batch` sequences.

    Products in narrower types than bf16 take less of the pipe where kernels use them, so their true share is
    smaller by up to the ratio of the peaks; attention's own products are left out of both ends.

    Args:
        deployment: The model, its GPUs and the type of its cache.
        batch: Running sequences of one data-parallel rank.
        step_ms: Wall time of a step.
    """
    architecture, layout = deployment.architecture, deployment.layout
    check_layout(architecture, layout)
    capacity = deployment.gpu.peak("bf16") * step_ms / 1e3

    def share(tile: int, routing: Routing) -> float:
        return _padded_flops(architecture, layout, batch, tile, routing) / capacity

    shares = {tile: share(tile, "strict") for tile in NARROW_TILES}
    shares[WIDE_TILE] = share(WIDE_TILE, "expected")
    return Activity(low=min(shares.values()), high=max(shares.values()), share_by_tile=shares)


def _padded_flops(
    architecture: Architecture, layout: Layout, batch: float, tile: int, routing: Routing
) -> float:
    total = 0.0
    for matrix in architecture.body.matrices:
        if not matrix.gemm:
            continue
        rows = batch if matrix.component in ATTENTION_SIDE else batch * layout.ranks
        share = matrix.total / ways(matrix, matrix.component, layout)
        total += 2 * share * _padded(rows, tile)
    tokens = batch * layout.ranks
    for experts in architecture.body.experts:
        distinct = distinct_experts(experts, tokens, routing)
        rows = tokens * experts.top_k / distinct
        share = experts.params * experts.layers / layout.tp
        total += 2 * share * distinct * _padded(rows, tile)
    return total


def _padded(rows: float, tile: int) -> float:
    return math.ceil(rows / tile - 1e-9) * tile
