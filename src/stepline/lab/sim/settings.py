"""How a simulated engine is configured: all that its own surfaces may tell about it."""

import msgspec

from stepline.errors import UsageError
from stepline.facts.hardware import Gpu
from stepline.lab.sim.shape import Shape

LEAST_POOL = 4096
"""Tokens of a KV pool below which a server is not worth starting."""


class Speculation(msgspec.Struct, frozen=True, kw_only=True):
    """A draft method and how often its tokens are right."""

    algorithm: str
    draft_tokens: int
    """Tokens verified per request and step, the bonus included."""
    accept_chance: float
    """That one more draft is accepted, given that all before it were."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Resolved settings of one start."""

    engine: str
    version: str
    model: str
    gpu: str
    tp: int = 1
    context_length: int
    max_running: int
    max_running_asked: int | None = None
    kv_tokens: int
    kv_tokens_asked: int | None = None
    graph_sizes: tuple[int, ...]
    """Empty: decode graphs are off."""
    prefill_graphs: bool = True
    chunk_tokens: int
    """Most prompt tokens of one forward; of vLLM all tokens of one."""
    max_prefill_tokens: int = 16384
    overlap: bool = True
    prefix_cache: bool = True
    conservativeness: float = 1.0
    ratio_decay_steps: int = 600
    reserve_whole_prompt: bool = True
    """vLLM admits a prompt only when all of it fits (`scheduler_reserve_full_isl`), not just its first chunk."""
    log_interval: int = 40
    attention_backend: str
    kv_splits: int | None = None
    """Blocks per KV head and request in decode attention; None: as many as fill the GPU."""
    speculation: Speculation | None = None
    memory_share: float
    trace_folder: str | None = None
    """Where vLLM's profiler writes; None: launched without one. SGLang is told with each request."""
    dtype: str = "bfloat16"
    remarks: tuple[str, ...] = ()
    """Extra start-up lines, as the engine would print them."""


def sglang_settings(model: str, gpu: Gpu, shape: Shape, tp: int) -> Settings:
    """SGLang 0.5.16 started with a model and nothing else.

    Raises:
        UsageError: The model leaves too little memory for a KV pool.
    """
    share = 0.88  # of the memory, weights and KV pool together, on GPUs of 60 GB and more
    tokens = _pool(model, gpu, shape, share)
    estimate = min(max(int(tokens / shape.positions * 512), 2048), 4096)
    return Settings(
        engine="sglang",
        version="0.5.16",
        model=model,
        gpu=gpu.name,
        tp=tp,
        context_length=shape.positions,
        max_running=min(estimate, tokens // 2),
        kv_tokens=tokens,
        graph_sizes=(1, 2, 4, 8, 12, *range(16, 257, 8)),
        chunk_tokens=8192,
        attention_backend="fa3",
        memory_share=share,
    )


def vllm_settings(model: str, gpu: Gpu, shape: Shape, tp: int) -> Settings:
    """VLLM 0.20 served with a model and nothing else.

    Raises:
        UsageError: The model leaves too little memory for a KV pool.
    """
    tokens = _pool(model, gpu, shape, 0.92) // 16 * 16
    large = gpu.memory_bytes >= 70 * 2**30
    return Settings(
        engine="vllm",
        version="0.20.0",
        model=model,
        gpu=gpu.name,
        tp=tp,
        context_length=shape.positions,
        max_running=1024 if large else 256,
        kv_tokens=tokens,
        graph_sizes=(1, 2, 4, *range(8, 256, 8), *range(256, 513, 16)),
        chunk_tokens=8192 if large else 2048,
        attention_backend="flash_attn",
        memory_share=0.92,
    )


def _pool(model: str, gpu: Gpu, shape: Shape, share: float) -> int:
    tokens = int((gpu.memory_bytes * share - shape.weight_bytes) / shape.kv_bytes_per_token)
    if tokens < LEAST_POOL:
        raise UsageError(
            f"{model} needs {shape.weight_bytes / 2**30:.0f} GiB a rank and leaves too little of {gpu.name}; "
            "give it more ranks or another GPU"
        )
    return tokens
