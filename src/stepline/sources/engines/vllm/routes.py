"""vLLM's HTTP routes beside generation (0.8.5 to 0.33; `entrypoints/openai/api_server.py`)."""

import re
from collections.abc import Mapping
from typing import Any

from stepline.sources.http import Http
from stepline.sources.openai_dialect import Completions
from stepline.sources.surface import Found, ProfileRoute, count_or_none, first_model, text_or_none

FLAGS = {
    "max_running": "--max-num-seqs",
    "decode_graph_sizes": "--max-cudagraph-capture-size",
    "context_length": "--max-model-len",
}
_OPEN = re.compile(rb"(?m)^vllm:num_requests_(?:running|waiting)\{[^}\n]*\} ([0-9.e+]+)$")


def find(http: Http) -> Found | None:
    """Recognised by the owner that its model list names.

    `/metrics` is always there, `/server_info` only in development mode, the profiler only when set up at launch.

    Raises:
        Unreachable: nobody answers at all.
    """
    model = first_model(http)
    if model is None or model.get("owned_by") != "vllm":
        return None
    version = http.get("/version").json()
    info = http.get("/server_info?config_format=json")
    lacks = []
    if not info.ok:
        lacks.append("/server_info: start the server with VLLM_SERVER_DEV_MODE=1")
    folder = _trace_folder(info.json())
    if folder is None:
        lacks.append('a profile: start the server with --profiler-config \'{"profiler":"torch",…}\'')
    return Found(
        engine="vllm",
        version=text_or_none(version.get("version")) if isinstance(version, Mapping) else None,
        model=text_or_none(model.get("root")) or model["id"],
        max_context_tokens=count_or_none(model.get("max_model_len")),
        dialect=Completions(model["id"], takes_ids=True, running_usage=True, extensions=True),
        metrics=http.get("/metrics").ok,
        files={"server_info.json": info.body} if info.ok else {},
        profile=None if folder is None else ProfileRoute(body=None, folder=folder, stops_itself=False),
        start_mark=b"non-default args: ",
        flush_path="/reset_prefix_cache",
        busy=_busy,
        flags=FLAGS,
        lacks=tuple(lacks),
    )


def _trace_folder(info: Any) -> str | None:
    """`vllm_config.profiler_config.torch_profiler_dir`, nested JSON since 0.14."""
    config = info.get("vllm_config") if isinstance(info, Mapping) else None
    profiler = config.get("profiler_config") if isinstance(config, Mapping) else None
    return text_or_none(profiler.get("torch_profiler_dir")) if isinstance(profiler, Mapping) else None


def _busy(http: Http) -> int | None:
    """Running and waiting requests by the gauges, which fall as soon as the engine has dropped an aborted one."""
    reply = http.get("/metrics")
    counts = _OPEN.findall(reply.body) if reply.ok else []
    return round(sum(map(float, counts))) if counts else None
