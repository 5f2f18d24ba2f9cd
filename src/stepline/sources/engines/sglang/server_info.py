"""SGLang's `/server_info` (`/get_server_info` before 0.5.6): settings, and one state per DP rank inside."""

from collections.abc import Mapping
from typing import Any

import msgspec

from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin, Sourced
from stepline.evidence.run import Run
from stepline.sources.arguments import start_of
from stepline.sources.engines.sglang.settings import GIB, facts_from_settings


def recognises(document: object) -> bool:
    """True for a JSON object with SGLang's internal states or its unmistakable argument names."""
    return isinstance(document, Mapping) and (
        "internal_states" in document or {"model_path", "tp_size", "mem_fraction_static"} <= set(document)
    )


def read_server_info(document: Mapping[str, Any], file: str) -> Run:
    """Settings and resolved capacities; caps are those in force per DP rank after the engine's clamping."""
    facts = facts_from_settings(document, file)
    listed = document.get("internal_states")
    states = [state for state in listed if isinstance(state, Mapping)] if isinstance(listed, list) else []
    state = states[0] if states else {}
    memory = state.get("memory_usage")
    memory = memory if isinstance(memory, Mapping) else {}

    def at(field: str) -> Origin:
        return Origin(file, None, f"internal_states[0].{field}")

    changes: dict[str, Any] = {}
    cap = state.get("effective_max_running_requests_per_dp")
    if isinstance(cap, int):
        changes["max_running"] = Sourced(cap, at("effective_max_running_requests_per_dp"))
    weight = memory.get("weight")
    if isinstance(weight, int | float) and weight > 0:
        changes["weight_bytes"] = Sourced(float(weight) * GIB, at("memory_usage.weight"))
    pool = memory.get("kvcache")
    if isinstance(pool, int | float) and pool > 0:
        changes["kv_pool_bytes"] = Sourced(float(pool) * GIB, at("memory_usage.kvcache"))
    tokens = memory.get("token_capacity")
    if isinstance(tokens, int) and facts.kv_capacity_tokens is None:
        changes["kv_capacity_tokens"] = Sourced(tokens, at("memory_usage.token_capacity"))
    if facts.decode_graph_sizes is not None and isinstance(cap, int):
        # The runner captures no size above the request pool, whatever the setting lists.
        sizes = facts.decode_graph_sizes
        captured = tuple(size for size in sizes.value if size <= cap)
        changes["decode_graph_sizes"] = Sourced(captured, sizes.origin)
    times = _step_times(state.get("step_time_dict"))
    if times:
        changes["step_time_ms"] = Sourced(times, at("step_time_dict"))
    start = start_of(document, Origin(file))
    return Run(
        server=msgspec.structs.replace(facts, **changes), start=start, metrics=_accept_length(state, at)
    )


def _step_times(recorded: object) -> dict[int, float]:
    """Mean step in ms by batch from `SGLANG_RECORD_STEP_TIME` lists of seconds."""
    if not isinstance(recorded, Mapping):
        return {}
    means = {}
    for batch, seconds in recorded.items():
        values = (
            [float(value) for value in seconds if isinstance(value, int | float)]
            if isinstance(seconds, list)
            else []
        )
        if values and str(batch).isdigit():
            means[int(batch)] = sum(values) / len(values) * 1000
    return means


def _accept_length(state: Mapping[str, Any], at: Any) -> tuple[EngineMetrics, ...]:
    accepted = state.get("avg_spec_accept_length")
    if isinstance(accepted, int | float) and accepted > 0:
        return (EngineMetrics(origin=at("avg_spec_accept_length"), accept_length=float(accepted)),)
    return ()
