"""SGLang's HTTP routes beside generation (0.4.6 to 0.5.23; `entrypoints/http_server.py`)."""

from collections.abc import Mapping
from typing import Any

from stepline.sources.engines.sglang.dialect import NativeGenerate
from stepline.sources.http import Http, Reply
from stepline.sources.surface import Found, ProfileRoute, count_or_none, text_or_none

FLAGS = {
    "max_running": "--max-running-requests",
    "decode_graph_sizes": "--cuda-graph-max-bs",
    "context_length": "--context-length",
}


def find(http: Http) -> Found | None:
    """Recognised by its model route, which no other engine has; `/server_info` holds everything else.

    Raises:
        Unreachable: nobody answers at all.
    """
    model = _first(http, "/model_info", "/get_model_info").json()
    if not isinstance(model, Mapping) or "model_path" not in model:
        return None
    answer = _first(http, "/server_info", "/get_server_info")
    info = answer.json()
    info = info if isinstance(info, Mapping) else {}
    metrics = http.get("/metrics").ok
    return Found(
        engine="sglang",
        version=text_or_none(info.get("version")),
        model=text_or_none(model["model_path"]),
        max_context_tokens=count_or_none(info.get("context_length")),
        dialect=NativeGenerate(),
        metrics=metrics,
        files={"server_info.json": answer.body} if info else {},
        profile=ProfileRoute(body=_profile, stops_itself=True),
        start_mark=b"server_args=",
        flush_path="/flush_cache",
        busy=_busy,
        flags=FLAGS,
        lacks=() if metrics else ("/metrics: start the server with --enable-metrics",),
    )


def _first(http: Http, path: str, alias: str) -> Reply:
    """The newer path, or the older one where it is not there yet."""
    reply = http.get(path)
    return reply if reply.ok else http.get(alias)


def _profile(folder: str, steps: int) -> dict[str, Any]:
    """Ends itself after `num_steps`; stacks would stretch the host's side and the file."""
    return {
        "output_dir": folder,
        "num_steps": steps,
        "activities": ["CPU", "GPU"],
        "with_stack": False,
        "record_shapes": True,
    }


def _busy(http: Http) -> int | None:
    """`/v1/loads` from 0.5.9, `/get_load` before; the sum over data-parallel ranks."""
    answer = _first(http, "/v1/loads?include=core", "/get_load").json()
    ranks = answer.get("loads") if isinstance(answer, Mapping) else answer
    if not isinstance(ranks, list) or not ranks:
        return None
    total = 0
    for rank in ranks:
        counts = rank if isinstance(rank, Mapping) else {}
        # The old route's num_reqs holds the waiting ones, the new one's num_running_reqs does not.
        parts = (
            (counts.get("num_running_reqs"), counts.get("num_waiting_reqs"))
            if "num_running_reqs" in counts
            else (counts.get("num_reqs"), 0)
        )
        for part in parts:
            if not isinstance(part, int):
                return None
            total += part
    return total
