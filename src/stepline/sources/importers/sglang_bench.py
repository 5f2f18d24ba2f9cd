"""SGLang's `bench_serving --output-file` and `one_batch_server` JSONL (`sglang/benchmark/serving.py`).

Read with these reservations: the duration includes a call of `/server_info`; on the OpenAI routes `itl` is
a gap between chunks and output lengths fall back to what was asked for; `max_concurrent_requests` is
ignored. `concurrency` (latency summed over duration) is the honest mean in flight.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from stepline.evidence.load import LoadLevel, StepRow
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.sources.engines.sglang import server_info
from stepline.sources.importers.values import at, number, positive
from stepline.sources.importers.vllm_bench import bench_level, with_request_times

TOOL = "sglang bench_serving"


def recognises(document: object) -> bool:
    """True for one line of either file."""
    if not isinstance(document, Mapping):
        return False
    names = set(document)
    serving = {"output_throughput", "total_output_tokens", "request_throughput", "backend"} <= names
    return (serving and "total_token_throughput" not in names) or _is_one_batch(document)


def read_level(document: Mapping[str, Any], origin: Origin) -> LoadLevel | StepRow | None:
    """One run at one level; of a fixed batch, a step."""
    if _is_one_batch(document):
        return _fixed_batch(document, origin)
    level = bench_level(document, origin, TOOL)
    native = document.get("backend") == "sglang"
    prompt, found = number(document, "total_input_tokens"), document.get("cached_tokens")
    hits = sum(found) if isinstance(found, list) and all(isinstance(n, int) for n in found) else None
    changes: dict[str, Any] = {"in_flight": positive(document, "concurrency")}
    if native:
        # The native route divides each gap by the tokens in its chunk.
        changes |= {"itl_ms": level.chunk_gap_ms, "chunk_gap_ms": None}
    if hits is not None and prompt:
        changes["cached_share"] = hits / prompt
    return with_request_times(msgspec.structs.replace(level, **changes), document)


def read_server(document: Mapping[str, Any], file: str) -> Run | None:
    """The server's own settings, which the tool saves beside its result."""
    info = document.get("server_info")
    if isinstance(info, Mapping) and server_info.recognises(info):
        return server_info.read_server_info(info, file)
    return None


def _is_one_batch(document: Mapping[str, Any]) -> bool:
    return {"batch_size", "output_throughput", "last_gen_throughput"} <= set(document)


def _fixed_batch(document: Mapping[str, Any], origin: Origin) -> StepRow | None:
    batch = positive(document, "batch_size")
    tok_s = positive(document, "steady_state_output_throughput", "last_gen_throughput")
    if batch is None or tok_s is None:
        return None
    accepted = max(1.0, number(document, "acc_length") or 1.0)  # -1 stands for no speculation
    prompt, made = number(document, "input_len"), number(document, "output_len")
    context = prompt + made / 2 if prompt is not None and made is not None else None
    graph = at(document, "server_info", "disable_cuda_graph")
    return StepRow(
        origin=origin,
        running=batch,
        tok_s=tok_s,
        step_ms=1000 * batch * accepted / tok_s,
        context_tokens=context,
        graph=not graph if isinstance(graph, bool) else None,
    )
