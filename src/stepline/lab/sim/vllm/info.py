"""vLLM's settings as its own surfaces show them: config line, `non-default args`, `/server_info`."""

from typing import Any

from stepline.lab.sim.settings import Settings

BLOCK = 16


def non_default_args(settings: Settings, port: int) -> dict[str, Any]:
    """What was asked for on the command line."""
    args: dict[str, Any] = {"model_tag": settings.model, "port": port, "model": settings.model}
    if settings.tp > 1:
        args["tensor_parallel_size"] = settings.tp
    if settings.dtype != "bfloat16":
        args["dtype"] = settings.dtype
    if settings.max_running_asked is not None:
        args["max_num_seqs"] = settings.max_running_asked
    if not settings.graph_sizes:
        args["enforce_eager"] = True
    if settings.kv_tokens_asked is not None:
        args["num_gpu_blocks_override"] = settings.kv_tokens_asked // BLOCK
    if settings.speculation:
        args["speculative_config"] = _speculation(settings)
    return args


def _speculation(settings: Settings) -> dict[str, Any] | None:
    spec = settings.speculation
    return (
        {"method": spec.algorithm.lower(), "num_speculative_tokens": spec.draft_tokens - 1} if spec else None
    )


def engine_config(settings: Settings) -> str:
    """The config that the engine core prints while it starts."""
    spec = settings.speculation
    draft = (
        f"SpeculativeConfig(method='{spec.algorithm.lower()}', model=None, num_spec_tokens={spec.draft_tokens - 1})"
        if spec
        else "None"
    )
    mode = "<CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>" if settings.graph_sizes else "<CUDAGraphMode.NONE: 0>"
    kind = "<CompilationMode.VLLM_COMPILE: 3>" if settings.graph_sizes else "<CompilationMode.NONE: 0>"
    sizes = list(settings.graph_sizes)
    return (
        f"model='{settings.model}', speculative_config={draft}, tokenizer='{settings.model}', "
        "skip_tokenizer_init=False, tokenizer_mode=auto, revision=None, tokenizer_revision=None, "
        f"trust_remote_code=False, dtype=torch.{settings.dtype}, max_seq_len={settings.context_length}, "
        "download_dir=None, "
        f"load_format=auto, tensor_parallel_size={settings.tp}, pipeline_parallel_size=1, data_parallel_size=1, "
        "decode_context_parallel_size=1, disable_custom_all_reduce=False, quantization=None, "
        f"enforce_eager={not settings.graph_sizes}, kv_cache_dtype=auto, device_config=cuda, "
        f"seed=0, served_model_name={settings.model}, enable_prefix_caching={settings.prefix_cache}, "
        "enable_chunked_prefill=True, pooler_config=None, "
        f"compilation_config={{'mode': {kind}, 'backend': 'inductor', 'cudagraph_mode': {mode}, "
        f"'cudagraph_num_of_warmups': 1, 'cudagraph_capture_sizes': {sizes}, "
        f"'max_cudagraph_capture_size': {max(sizes, default=0)}}}"
    )


def server_info(settings: Settings) -> dict[str, Any]:
    """The answer of `/server_info?config_format=json` in development mode."""
    sizes = list(settings.graph_sizes)
    config = {
        "model_config": {
            "model": settings.model,
            "tokenizer": settings.model,
            "dtype": f"torch.{settings.dtype}",
            "max_model_len": settings.context_length,
            "quantization": None,
            "enforce_eager": not sizes,
            "served_model_name": settings.model,
        },
        "cache_config": {
            "block_size": BLOCK,
            "gpu_memory_utilization": settings.memory_share,
            "cache_dtype": "auto",
            "enable_prefix_caching": settings.prefix_cache,
            "num_gpu_blocks": settings.kv_tokens // BLOCK,
        },
        "parallel_config": {
            "pipeline_parallel_size": 1,
            "tensor_parallel_size": settings.tp,
            "data_parallel_size": 1,
            "enable_expert_parallel": False,
        },
        "scheduler_config": {
            "max_num_batched_tokens": settings.chunk_tokens,
            "max_num_seqs": settings.max_running,
            "enable_chunked_prefill": True,
            "policy": "fcfs",
            "async_scheduling": settings.overlap,
            "stream_interval": 1,
        },
        "load_config": {"load_format": "auto"},
        "attention_config": {"backend": settings.attention_backend.upper()},
        "speculative_config": _speculation(settings),
        "compilation_config": {
            "cudagraph_mode": "FULL_AND_PIECEWISE" if sizes else "NONE",
            "cudagraph_capture_sizes": sizes,
            "max_cudagraph_capture_size": max(sizes, default=0),
        },
        "profiler_config": {
            "profiler": "torch" if settings.trace_folder else None,
            "torch_profiler_dir": settings.trace_folder or "",
            "torch_profiler_with_stack": False,
        },
    }
    return {"vllm_config": config, "vllm_env": {"VLLM_SERVER_DEV_MODE": True}, "system_env": {}}
