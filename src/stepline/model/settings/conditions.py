"""Whether a setting can matter to a server at all: true, false, or None where nothing tells."""

from collections.abc import Callable, Mapping
from typing import Any

from stepline.evidence.run import Run
from stepline.evidence.server import ServerFacts
from stepline.facts.settings.direction import OFF
from stepline.model.settings.in_force import Settings

LONG_CONTEXT_TOKENS = 16384
"""A decode step reads as much KV as weights from some ten thousand tokens on for the models that are served."""

Verdict = bool | None


def holds(condition: str | None, run: Run, settings: Settings) -> Verdict:
    """Whether a judgement's `when` holds for this server."""
    if condition is None:
        return True
    if condition.startswith("setting:"):
        other = settings.get(condition.removeprefix("setting:"))
        if other is None or not other.known:
            return None
        return other.value not in OFF if not isinstance(other.value, list | dict) else bool(other.value)
    check = CHECKS.get(condition)
    return None if check is None else check(run)


def _more_than_one(field: str) -> Callable[[Run], Verdict]:
    def check(run: Run) -> Verdict:
        size = getattr(run.server, field)
        return None if size is None else size.value > 1

    return check


def _several_gpus(run: Run) -> Verdict:
    server = run.server
    sizes = [size.value for size in (server.tp, server.dp, server.pp, server.ep) if size is not None]
    if any(size > 1 for size in sizes):
        return True
    return False if server.tp is not None else None


def _dp_attention(run: Run) -> Verdict:
    return None if run.server.dp_attention is None else run.server.dp_attention.value


def _drafts(run: Run) -> Verdict:
    """None where nobody said: an engine that drafts says so, one that does not says nothing."""
    server = run.server
    if server.speculative is not None or (server.draft_tokens is not None and server.draft_tokens.value > 1):
        return True
    return False if _settings_seen(server) else None


def _disaggregated(run: Run) -> Verdict:
    if run.server.disaggregation is not None or run.transfers:
        return True
    return False if _settings_seen(run.server) else None


def _settings_seen(server: ServerFacts) -> bool:
    return server.engine is not None and server.engine.origin.field in ("server_args", "config")


def _config(run: Run) -> Mapping[str, Any] | None:
    config = None if run.model_config is None else run.model_config.value
    if config is None:
        return None
    text = config.get("text_config")
    return {**config, **text} if isinstance(text, Mapping) else config


def _has(*keys: str) -> Callable[[Run], Verdict]:
    def check(run: Run) -> Verdict:
        config = _config(run)
        return None if config is None else any(config.get(key) not in (None, 0, False, []) for key in keys)

    return check


def _format(*words: str) -> Callable[[Run], Verdict]:
    def check(run: Run) -> Verdict:
        config = _config(run)
        asked = run.server.quantization
        if config is None and asked is None:
            return None
        told = (
            f"{'' if asked is None else asked.value} {(config or {}).get('quantization_config', '')}".lower()
        )
        return any(word in told for word in words)

    return check


def _quantised(run: Run) -> Verdict:
    config = _config(run)
    if run.server.quantization is not None:
        return True
    return None if config is None else bool(config.get("quantization_config"))


def _long_context(run: Run) -> Verdict:
    config, context = _config(run), run.server.context_length
    if context is not None and context.value < LONG_CONTEXT_TOKENS:
        return False
    longest = (config or {}).get("max_position_embeddings")
    return False if isinstance(longest, int) and longest < LONG_CONTEXT_TOKENS else None


def _gpu_of(*makers: str) -> Callable[[Run], Verdict]:
    def check(run: Run) -> Verdict:
        gpu = run.server.gpu
        return None if gpu is None else any(maker in gpu.value.lower() for maker in makers)

    return check


CHECKS: dict[str, Callable[[Run], Verdict]] = {
    "moe": _has("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"),
    "speculation": _drafts,
    "multi_gpu": _several_gpus,
    "tp": _more_than_one("tp"),
    "dp": _more_than_one("dp"),
    "pp": _more_than_one("pp"),
    "ep": _more_than_one("ep"),
    "dp_attention": _dp_attention,
    "disaggregation": _disaggregated,
    "multimodal": _has("vision_config", "audio_config"),
    "hybrid_state": _has(
        "mamba_num_heads",
        "mamba_d_state",
        "ssm_state_size",
        "linear_num_value_heads",
        "linear_attn_config",
        "state_size",
    ),
    "sparse_attention": _has("index_topk", "index_n_heads", "compress_ratios"),
    "sliding_window": _has("sliding_window", "attention_chunk_size"),
    "mla": _has("kv_lora_rank"),
    "quantised": _quantised,
    "fp8": _format("fp8", "float8", "e4m3"),
    "fp4": _format("fp4", "nvfp4", "mxfp4"),
    "int4": _format("awq", "gptq", "int4", "w4a16"),
    "long_context": _long_context,
    "rocm": _gpu_of("mi2", "mi3", "mi4", "amd", "radeon", "instinct"),
    "cpu": _gpu_of("cpu", "xeon", "epyc"),
}
"""What the evidence tells of a server. Conditions of the load (prefixes, adapters, structured output) are not here:
nothing read so far rules them out, so a setting that waits for them stays in the list as one that may matter."""
