"""SGLang's settings, however they are spelled: `/server_info`, `server_args=…` in the log, start-up lines."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from stepline.evidence.origin import Origin, Sourced
from stepline.evidence.server import ServerFacts
from stepline.sources.pyrepr import parse_repr
from stepline.sources.redact import redact

T = TypeVar("T")

GIB = 1024**3
DEFAULT_DECODE_LOG_INTERVAL = 40
"""`--decode-log-interval`, the same in every release read from 0.4.1 to 0.5.23."""

_DUMP = re.compile(r"server_args\s*=\s*(?=ServerArgs\(|\{)")


def parse_server_args(text: str) -> dict[str, Any]:
    """The settings of a `server_args=ServerArgs(k=v, …)` or (0.5.23) `server_args={'k': v, …}` line."""
    dump = _DUMP.search(text)
    settings = parse_repr(text, dump.end()) if dump else None
    return settings if isinstance(settings, dict) else {}


def facts_from_settings(settings: Mapping[str, Any], file: str, line: int | None = None) -> ServerFacts:
    """ServerFacts from settings by SGLang's own names; a name that is absent stays unknown."""

    def say(value: T | None, name: str) -> Sourced[T] | None:
        return None if value is None else Sourced(value, Origin(file, line, name))

    def first(kind: type[T], *names: str) -> Sourced[T] | None:
        for name in names:
            value = settings.get(name)
            if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
                clean = redact(value) if isinstance(value, str) else value
                return Sourced(cast("T", clean), Origin(file, line, name))
        return None

    graphs = _decode_graph_settings(settings)
    quantization = first(str, "quantization")
    return ServerFacts(
        engine=say("sglang", "server_args"),
        version=first(str, "version"),
        model=first(str, "model_path", "served_model_name"),
        tp=first(int, "tp_size", "tensor_parallel_size"),
        dp=first(int, "dp_size", "data_parallel_size"),
        pp=first(int, "pp_size", "pipeline_parallel_size"),
        ep=first(int, "ep_size", "expert_parallel_size"),
        dp_attention=first(bool, "enable_dp_attention"),
        context_length=first(int, "context_length"),
        max_running_requested=first(int, "max_running_requests"),
        kv_capacity_tokens=first(int, "max_total_num_tokens", "max_total_tokens"),
        kv_dtype=_unless_auto(first(str, "kv_cache_dtype")),
        page_tokens=first(int, "page_size"),
        offloaded_gib=_gib(first(int, "cpu_offload_gb") or first(float, "cpu_offload_gb")),
        weight_dtype=_unless_auto(first(str, "dtype")),
        quantization=quantization,
        dummy_weights=say(settings["load_format"] == "dummy", "load_format")
        if "load_format" in settings
        else None,
        decode_graphs=say(graphs[0], "cuda_graph"),
        decode_graph_sizes=say(graphs[1], "cuda_graph"),
        overlap_schedule=_negated(first(bool, "disable_overlap_schedule")),
        prefix_cache=_negated(first(bool, "disable_radix_cache")),
        chunked_prefill_tokens=first(int, "chunked_prefill_size"),
        max_prefill_tokens=first(int, "max_prefill_tokens"),
        decode_report_interval_steps=first(int, "decode_log_interval"),
        attention_backend=first(str, "attention_backend"),
        moe_backend=_unless_auto(first(str, "moe_runner_backend")),
        speculative=first(str, "speculative_algorithm"),
        draft_tokens=first(int, "speculative_num_draft_tokens"),
        disaggregation=None
        if settings.get("disaggregation_mode") in (None, "null")
        else first(str, "disaggregation_mode"),
    )


def _decode_graph_settings(settings: Mapping[str, Any]) -> tuple[bool | None, tuple[int, ...] | None]:
    """(graphs on, captured sizes): 0.5.16 nests `cuda_graph_config.decode`, older ones keep flat names."""
    if settings.get("disable_cuda_graph") is True or settings.get("disable_decode_cuda_graph") is True:
        return False, None
    nested = settings.get("cuda_graph_config")
    decode = nested.get("decode") if isinstance(nested, Mapping) else None
    if isinstance(decode, Mapping):
        if decode.get("backend") == "disabled":
            return False, None
        if sizes := _sizes(decode.get("bs")):
            return True, sizes
    for name in ("decode_cuda_graph_bs", "cuda_graph_bs_decode", "cuda_graph_bs"):
        if sizes := _sizes(settings.get(name)):
            return True, sizes
    return (True, None) if settings.get("disable_cuda_graph") is False else (None, None)


def _sizes(listed: object) -> tuple[int, ...]:
    if not isinstance(listed, list) or not all(type(size) is int for size in listed):
        return ()
    return tuple(listed)


def _gib(value: Sourced[int] | Sourced[float] | None) -> Sourced[float] | None:
    return None if value is None else Sourced(float(value.value), value.origin)


def _unless_auto(value: Sourced[str] | None) -> Sourced[str] | None:
    return None if value is None or value.value == "auto" else value


def _negated(value: Sourced[bool] | None) -> Sourced[bool] | None:
    return None if value is None else Sourced(not value.value, value.origin)
