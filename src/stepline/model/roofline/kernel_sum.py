"""A decode step as the sum of what its kernels were measured to take on this GPU, one at a time.

No engine, capture or public row enters: products stream their weights at the rate of their batch and size, attention
reads its cache, the small kernels of a layer take what small kernels take, the logits are passed a few times, and each
kernel pays for following another kind, as whole layers show. What is left out lowers the sum: gaps between steps, work
of the host that shows, kernels slower than torch's.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from stepline.facts.hardware import Gpu
from stepline.model.roofline.architecture_parts import ATTENTION_SIDE, Architecture, Format, Matrix
from stepline.model.roofline.calibration_lines import Rates
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.forward_cost import cache_work, ways
from stepline.model.roofline.layout import Layout, check_layout

SMALL_PER_LAYER = {"norm": 2, "elementwise": 2, "kv-write": 1, "attention": 1}
"""Beside products and attention, by part of a trace: two norms with their residual; rotary embedding and activation;
the cache write; the merge of attention's splits. SGLang and vLLM fuse these and no more; a trace of a decode step of
SGLang 0.5.16 shows the same. The last norm comes once."""
LOGIT_PASSES = 5
"""Sampling by temperature in the engines' plain path: scale, softmax, noise, divide, argmax; each over all logits."""
LOGITS = 128256
"""Of the vocabulary that passes were measured with."""
ACTIVATION_BYTES = 2
_JOINED = ("k_proj", "v_proj", "up_proj")
"""Weights that engines multiply together with the one before: query, key and value; gate and up."""


class Product(NamedTuple):
    """A matrix product that engines launch as one kernel, in each of `layers` layers."""

    weight_bytes: float
    """On one GPU."""
    params: float
    rows: float
    dtype: str
    layers: int


def why_not(deployment: Deployment, rates: Rates) -> str | None:
    """Why a calibration does not describe this model on this layout; None when it does."""
    architecture, gpu, layout = deployment.architecture, deployment.gpu, deployment.layout
    body = architecture.body
    if rates.missing:
        return f"it lacks {' and '.join(rates.missing)}"
    if body.experts:
        return "grouped products of experts are not measured"
    if body.states:
        return "linear attention is not measured"
    if any(cache.component != "kv read" or cache.name == "latent" for cache in body.caches):
        return "latent and sparse attention are not measured"
    if not all(rates.streams(_dtype(matrix.format)) for matrix in body.matrices if matrix.gemm):
        return "products of its quantisation are not measured"
    if layout.dp_attention:
        return "exchange under attention data parallelism is not measured"
    if layout.tp > 1 and layout.tp not in gpu.allreduce_us_common:
        return f"no all-reduce latency is known for {layout.tp}x {gpu.name}"
    return None


def calibrated_step_ms(deployment: Deployment, rates: Rates, *, batch: float, context_tokens: float) -> float:
    """Milliseconds of a decode step: the sum of `calibrated_parts_ms`, whose arguments these are."""
    parts = calibrated_parts_ms(deployment, rates, batch=batch, context_tokens=context_tokens)
    return math.fsum(parts.values())


def calibrated_parts_ms(
    deployment: Deployment, rates: Rates, *, batch: float, context_tokens: float
) -> dict[str, float]:
    """Milliseconds of a decode step by part of a trace, each kernel on one GPU; through all stages of a pipeline.

    What a kernel costs by following another kind is its own part's.

    Args:
        deployment: One for which `why_not` is None, on the GPU that was measured; its published all-reduce stands in
            where none was measured.
        rates: What was measured on that GPU.
        batch: Running sequences of one data-parallel rank.
        context_tokens: Live tokens of a sequence.

    Raises:
        UnknownFact: an impossible layout, an unknown cache type, or a measurement that lacks.
    """
    architecture, gpu, layout = deployment.architecture, deployment.gpu, deployment.layout
    check_layout(architecture, layout)
    joined = list(products(architecture, layout, batch))
    following_ms, small_ms = rates.following_ms(batch), rates.small_ms(batch) + rates.following_ms(batch)
    attention_ms = 0.0
    for cache, work in zip(
        architecture.body.caches,
        cache_work(
            architecture.body,
            layout,
            sequences=batch,
            queries=batch,
            context_tokens=context_tokens,
            kv_dtype=deployment.cache_dtype,
        ),
        strict=True,
    ):
        one_ms = rates.attention_ms(batch, work.bytes / cache.layers)
        attention_ms += cache.layers * (one_ms + following_ms)
    passed_ms = rates.argmax_ms(batch) * architecture.vocab / LOGITS
    parts = {
        "attention": attention_ms,
        "gemm": sum(_product_ms(rates, one) + one.layers * following_ms for one in joined),
        "norm": small_ms,
        "sampling": LOGIT_PASSES * (passed_ms + following_ms),
        "communication": _exchange_ms(architecture, gpu, layout, rates, batch),
    }
    for part, kernels in SMALL_PER_LAYER.items():
        parts[part] = parts.get(part, 0.0) + kernels * architecture.layers * small_ms
    return parts


def products(architecture: Architecture, layout: Layout, batch: float) -> Iterator[Product]:
    """The matrix products of a step, joined as engines join them."""
    joined: list[list[Matrix]] = []
    for matrix in architecture.body.matrices:
        if matrix.gemm:
            if matrix.name.rsplit(".", 1)[-1] in _JOINED and joined:
                joined[-1].append(matrix)
            else:
                joined.append([matrix])
    for group in joined:
        first = group[0]
        shares = [matrix.params / ways(matrix, matrix.component, layout) for matrix in group]
        rows = batch if first.component in ATTENTION_SIDE else batch * layout.ranks
        size = sum(share * matrix.format.bits / 8 for share, matrix in zip(shares, group, strict=True))
        yield Product(size, sum(shares), rows, _dtype(first.format) or "", first.layers)


def _product_ms(rates: Rates, product: Product) -> float:
    flops = 2 * product.params * product.rows
    return product.layers * rates.product_ms(product.dtype, product.rows, product.weight_bytes, flops)


def _dtype(fmt: Format) -> str | None:
    """The measured type whose products these weights are read like."""
    if fmt.bits == 16:
        return "bf16"
    return "fp8" if fmt.math == "fp8" and 8 <= fmt.bits < 8.1 else None


def _exchange_ms(architecture: Architecture, gpu: Gpu, layout: Layout, rates: Rates, batch: float) -> float:
    """All-reduces of a step: two a layer, as in the floor."""
    count = architecture.layers * ((layout.attention_tp > 1) + (layout.tp > 1))
    if not count:
        return 0.0
    each_ms = rates.all_reduce_ms(layout.tp, batch * architecture.hidden * ACTIVATION_BYTES)
    return count * (gpu.allreduce_us_common[layout.tp] / 1e3 if each_ms is None else each_ms)
