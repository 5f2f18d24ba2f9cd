"""SGLang's settings as its own surfaces show them: `server_args=` in the log, `/server_info`, `/model_info`.

`server_args.json` is what a real 0.5.16 answered for a plain start on one H200; names and order are the engine's.
"""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from stepline.lab.sim.settings import Settings
from stepline.lab.sim.shape import Shape

GIB = 1024**3


@cache
def _recorded() -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(Path(__file__).with_name("server_args.json").read_bytes())
    return found


def prefill_graph_sizes(most: int) -> list[int]:
    """Token counts that prefill graphs are captured for, up to a chunk."""
    sizes: list[int] = _recorded()["cuda_graph_config"]["prefill"]["bs"]
    return [size for size in sizes if size <= most]


def server_args(settings: Settings, host: str, port: int) -> dict[str, Any]:
    """All arguments by the engine's names, resolved as after start-up."""
    recorded = _recorded()
    decode: dict[str, Any] = {**recorded["cuda_graph_config"]["decode"], "bs": list(settings.graph_sizes)}
    decode |= {"max_bs": max(settings.graph_sizes, default=None)}
    if not settings.graph_sizes:
        decode |= {"backend": "disabled"}
    sizes = prefill_graph_sizes(settings.chunk_tokens)
    prefill: dict[str, Any] = {
        **recorded["cuda_graph_config"]["prefill"],
        "bs": sizes,
        "max_bs": settings.chunk_tokens,
    }
    if not settings.prefill_graphs:
        prefill |= {"backend": "disabled"}
    spec = settings.speculation
    return {
        **recorded,
        "model_path": settings.model,
        "tokenizer_path": settings.model,
        "served_model_name": settings.model,
        "load_format": "auto",
        "dtype": "auto" if settings.dtype == "bfloat16" else settings.dtype,
        "context_length": settings.context_length,
        "host": host,
        "port": port,
        "tp_size": settings.tp,
        "mem_fraction_static": settings.memory_share,
        "max_running_requests": settings.max_running_asked,
        "max_total_tokens": settings.kv_tokens_asked,
        "chunked_prefill_size": settings.chunk_tokens,
        "max_prefill_tokens": settings.max_prefill_tokens,
        "schedule_conservativeness": settings.conservativeness,
        "disable_radix_cache": not settings.prefix_cache,
        "disable_overlap_schedule": not settings.overlap,
        "decode_log_interval": settings.log_interval,
        "attention_backend": settings.attention_backend,
        "triton_attention_num_kv_splits": settings.kv_splits or recorded["triton_attention_num_kv_splits"],
        "cuda_graph_config": {"decode": decode, "prefill": prefill},
        "cuda_graph_max_bs_decode": max(settings.graph_sizes, default=None),
        "disable_decode_cuda_graph": not settings.graph_sizes,
        "disable_prefill_cuda_graph": not settings.prefill_graphs,
        "speculative_algorithm": spec.algorithm if spec else None,
        "speculative_num_draft_tokens": spec.draft_tokens if spec else None,
    }


def server_info(
    settings: Settings, shape: Shape, host: str, port: int, *, throughput: float, accept_length: float
) -> dict[str, Any]:
    """The answer of `/server_info`."""
    args = server_args(settings, host, port)
    state: dict[str, Any] = {
        **args,
        "last_gen_throughput": throughput,
        "memory_usage": {
            "weight": round(shape.weight_bytes / GIB, 2),
            "kvcache": round(shape.kv_bytes_per_token * settings.kv_tokens / GIB, 2),
            "token_capacity": settings.kv_tokens,
            "graph": 0.6 if settings.graph_sizes else 0.0,
        },
        "effective_max_running_requests_per_dp": settings.max_running,
    }
    if settings.speculation and accept_length:
        state["avg_spec_accept_length"] = accept_length
    return {
        **args,
        "status": "ready",
        "max_total_num_tokens": settings.kv_tokens,
        "max_req_input_len": settings.context_length - 6,
        "version": settings.version,
        "kv_events": None,
        "internal_states": [state],
    }


def model_info(settings: Settings) -> dict[str, Any]:
    """The answer of `/model_info`."""
    return {
        "model_path": settings.model,
        "tokenizer_path": settings.model,
        "is_generation": True,
        "preferred_sampling_params": None,
        "weight_version": "default",
        "has_image_understanding": False,
        "has_audio_understanding": False,
        "served_model_name": settings.model,
    }
