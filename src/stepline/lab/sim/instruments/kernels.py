"""Which kernels a simulated forward launches, in order, with grids and durations that add up to its GPU time.

Names and grids are those of SGLang 0.5.16 on an H200 (Llama-3.1-8B, tests/data/traces/healthy.json.gz): one kernel
for each matrix, two for decode attention over the split cache, five small ones a layer.
"""

from collections.abc import Iterator

import msgspec

from stepline.lab.sim.settings import Settings
from stepline.lab.sim.shape import Shape
from stepline.lab.sim.world import Disturbance, Parts

_AT = "void at::native::"
_GEMM = "nvjet_sm90_tst_64x32_64x16_4x1_v_bz_TNT"
_SMALL = (
    ("void flashinfer::norm::RMSNormKernel<8u, __nv_bfloat16>", 0.2),
    ("void (anonymous namespace)::fused_rope_kernel<true, 128l, true, __nv_bfloat16, long, 16u>", 0.15),
    ("void (anonymous namespace)::store_kvcache<2048l, 4, true, long>", 0.15),
    ("void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>", 0.25),
    ("void (anonymous namespace)::act_and_mul_kernel<__nv_bfloat16>", 0.25),
)
_OVER_CONTEXT = (
    (f"{_AT}index_elementwise_kernel<128, 4, at::native::gpu_index_kernel>", 0.3),
    (f"{_AT}unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>", 0.2),
    ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8", 0.2),
    (f"{_AT}vectorized_elementwise_kernel<4, at::native::launch_clamp_scalar>", 0.1),
    (f"{_AT}reduce_kernel<512, 1, at::native::ReduceOp<float>>", 0.1),
    (f"{_AT}vectorized_elementwise_kernel<4, at::native::masked_fill_kernel>", 0.1),
)
_CONTEXT_BLOCK = 256
_UNFUSED = (
    (f"{_AT}elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<direct_copy_kernel_cuda>>", 0.48),
    (
        f"{_AT}vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, float, float, MulFunctor>>",
        0.18,
    ),
    ("void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 2, 2, false, false>", 0.15),
    ("internal::gemvx::kernel<int, int, float, float, float, float, false, true, false, false, 9>", 0.1),
    (f"{_AT}unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>", 0.07),
    ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>", 0.02),
)
"""Attention operator by operator in a graph, and shares of its time: tests/data/h200-torch, attention_unfused_graph."""
_WIDE = {
    "tf32": "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x16_stage6_warpsize2x2x1",
    "fp32": "void sgemm_largek_lds64<true, false, 6, 3, 4, 5, 2, 66>",
}
"""Products in 32 bits; the second is the one of weights_fp32 in tests/data/h200-torch."""
_REDUCE = "void sglang::cross_device_reduce_1stage<__nv_bfloat16, 4>"
_NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


class Kernel(msgspec.Struct, frozen=True, gc=False):
    """One launch; `us` on the GPU."""

    name: str
    us: float
    grid: tuple[int, int, int]


class Forwarded(msgspec.Struct, frozen=True, kw_only=True):
    """What the kernels of a forward depend on."""

    parts: Parts
    factor: float
    """GPU time of the forward over the sum of its parts."""
    batch: int
    tokens: int
    """New tokens of prompts in it."""
    disturbance: Disturbance

    def gemm(self, part: str, name: str) -> str:
        """The kernel that multiplies the weights of a part, `name` where nothing widened them."""
        return _WIDE[self.disturbance.wide_math] if part in self.disturbance.wide_parts else name


def of_layers(done: Forwarded, shape: Shape, settings: Settings) -> Iterator[Kernel]:
    """Kernels of all layers and the head: what a decode graph holds."""
    parts, per = done.parts, 1e3 * done.factor / shape.layers
    rows = max(1, done.batch + done.tokens)
    small_us = parts.layers * per
    for layer in range(shape.layers):
        yield _small(0, small_us, rows)
        yield Kernel(done.gemm("attention", _GEMM), 0.6 * parts.projections * per, (4, 24, 1))
        yield _small(1, small_us, rows)
        yield _small(2, small_us, rows)
        yield from _attention(done, shape, settings, per)
        yield Kernel(done.gemm("attention", _GEMM), 0.4 * parts.projections * per, (2, 64, 1))
        yield from _reduced(done, per)
        yield _small(3, small_us, rows)
        yield from _feed_forward(done, shape, settings, layer, small=_small(4, small_us, rows))
        yield from _reduced(done, per)
        yield from _planted(done, settings, per)
    head = done.gemm("head", "nvjet_sm90_tst_512x32_64x3_2x1_v_bz_TNT")
    yield Kernel(head, 1e3 * parts.head * done.factor, (2, 66, 1))


def after_layers(done: Forwarded) -> Iterator[Kernel]:
    """Sampling, and drafting where there are drafts: launched one by one after the graph."""
    us = 1e3 * done.parts.sampling * done.factor
    rows = max(1, done.batch)
    for name, share in (
        (f"{_AT}(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float>", 0.5),
        (f"{_AT}reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>>>", 0.5),
    ):
        yield Kernel(name, us * share, (rows, 1, 1))
    if done.parts.drafts:
        yield Kernel("verify_tree_greedy", 1e3 * done.parts.drafts * done.factor, (rows, 1, 1))


def _small(index: int, layer_us: float, rows: int) -> Kernel:
    name, share = _SMALL[index]
    return Kernel(name, layer_us * share, (rows, 1, 1))


def _attention(done: Forwarded, shape: Shape, settings: Settings, per: float) -> Iterator[Kernel]:
    if done.parts.prefill_attention:
        grid = (shape.heads, -(-done.tokens // 128), 1)
        yield Kernel("_fwd_kernel", done.parts.prefill_attention * per, grid)
    for name, share in _UNFUSED if done.parts.unfused else ():
        yield Kernel(name, done.parts.unfused * per * share, (done.batch * shape.heads, 1, 1))
    if not done.parts.cache:
        return
    us = done.parts.cache * per
    if settings.attention_backend == "triton":
        grid = (done.batch, shape.kv_heads, settings.kv_splits or 8)
        yield Kernel("_fwd_grouped_kernel_stage1", 0.9 * us, grid)
        yield Kernel("_fwd_kernel_stage2", 0.1 * us, (done.batch, shape.heads, 1))
    else:
        name = "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90>>"
        splits = max(
            1, -(-264 // (done.batch * shape.kv_heads))
        )  # FlashAttention 3 fills two waves of an H200
        yield Kernel(name, us, (shape.kv_heads, done.batch, splits))


def _feed_forward(
    done: Forwarded, shape: Shape, settings: Settings, layer: int, *, small: Kernel
) -> Iterator[Kernel]:
    parts, factor = done.parts, done.factor
    dense_us = 1e3 * factor * parts.dense / shape.layers
    if layer >= shape.layers - shape.expert_layers:
        us = 1e3 * factor * parts.experts / shape.expert_layers
        prefix = "sglang" if settings.engine == "sglang" else "vllm"
        yield Kernel(f"void {prefix}::moe::topk_softmax_kernel", 0.2 * dense_us, (8, 1, 1))
        yield Kernel("fused_moe_kernel", 0.65 * us, (shape.experts * 4, 1, 1))
        yield small
        yield Kernel("fused_moe_kernel", 0.35 * us, (shape.experts * 8, 1, 1))
        if dense_us:
            yield Kernel(_GEMM, 0.8 * dense_us, (2, 64, 1))
        return
    up = done.gemm("dense", "nvjet_sm90_tst_128x32_64x10_2x1_v_bz_TNT")
    down = done.gemm("dense", "nvjet_sm90_tst_128x32_64x10_2x1_v_bz_splitK_TNT")
    yield Kernel(up, 0.66 * dense_us, (2, 66, 1))
    yield small
    yield Kernel(down, 0.34 * dense_us, (2, 64, 1))


def _reduced(done: Forwarded, per: float) -> Iterator[Kernel]:
    if done.parts.reduces:
        name = _NCCL if done.disturbance.exchange_us else _REDUCE
        yield Kernel(name, done.parts.reduces * per / 2, (36, 1, 1))


def _planted(done: Forwarded, settings: Settings, per: float) -> Iterator[Kernel]:
    """What a fault makes the GPU do besides: over the configured context, or for one request after the other."""
    if done.parts.by_context:
        blocks = done.batch * (settings.context_length // _CONTEXT_BLOCK + 1)
        for name, share in _OVER_CONTEXT:
            yield Kernel(name, done.parts.by_context * per * share, (blocks, 1, 1))
    if done.parts.one_by_one:
        for _ in range(done.batch):
            us = done.parts.one_by_one * per / done.batch
            yield Kernel(
                f"{_AT}elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast>", us, (1, 1, 1)
            )
