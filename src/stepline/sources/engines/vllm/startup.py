"""What vLLM's start-up lines settle (0.8.5 to 0.33). Sizes are in GiB unless a line says GB."""

import re
from collections.abc import Callable
from typing import Any

Facts = dict[str, Any]
"""Values by field of ServerFacts."""

GIB = 1024**3


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


def _gib(text: str) -> float:
    return float(text) * GIB


def _not_cpu(match: re.Match[str]) -> Facts:
    return {} if match[1] == "CPU" else {"kv_capacity_tokens": _whole(match[2])}


_NUMBER = r"(\d+(?:\.\d+)?)"
RULES: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], Facts]], ...] = (
    (
        "KV cache size:",
        re.compile(r"(\w+)(?: \+ host)? KV cache size: (\d[\d,]*) tokens"),
        _not_cpu,
    ),
    (
        "Available KV cache memory",
        re.compile(rf"Available KV cache memory: {_NUMBER} GiB"),
        lambda m: {"kv_pool_bytes": _gib(m[1])},
    ),
    (
        "Model loading took",
        re.compile(rf"Model loading took {_NUMBER} (?:GiB|GB)"),
        lambda m: {"weight_bytes": _gib(m[1])},
    ),
    (
        "model weights took",
        re.compile(rf"Loading model weights took {_NUMBER} (?:GiB|GB)"),
        lambda m: {"weight_bytes": _gib(m[1])},
    ),
    (
        "max_num_batched_tokens=",
        re.compile(r"Chunked prefill is enabled with max_num_batched_tokens=(\d+)"),
        lambda m: {"chunked_prefill_tokens": int(m[1])},
    ),
    (
        "Defaulting max_num_seqs",
        re.compile(r"Defaulting max_num_seqs to (\d+)"),
        lambda m: {"max_running": int(m[1])},
    ),
    (
        "Using max model len",
        re.compile(r"Using max model len (\d+)"),
        lambda m: {"context_length": int(m[1])},
    ),
    (
        "vLLM API server version",
        re.compile(r"vLLM API server version (\S+)"),
        lambda m: {"version": m[1]},
    ),
    (
        "backend",
        re.compile(r"Using (\w+) attention backend out of"),
        lambda m: {"attention_backend": m[1].lower()},
    ),
    (
        "backend on V1",
        re.compile(r"Using ([\w ]+?) backend on V1 engine"),
        lambda m: {"attention_backend": m[1].lower().replace(" ", "_")},
    ),
    (
        "MoE backend",
        re.compile(r"Using '?(\w+)'? \w+ MoE backend"),
        lambda m: {"moe_backend": m[1].lower()},
    ),
    (
        "eager",
        re.compile(
            r"Cudagraph is disabled under eager mode|Enforce eager set, disabling|To use CUDA ?graphs?, unset"
        ),
        lambda _m: {"decode_graphs": False},
    ),
    (
        "synchronous scheduling is",
        re.compile(r"Asynchronous scheduling is (enabled|disabled)"),
        lambda m: {"overlap_schedule": m[1] == "enabled"},
    ),
    (
        "Async scheduling is disabled",
        re.compile(r"Async scheduling is disabled because"),
        lambda _m: {"overlap_schedule": False},
    ),
    (
        "Overriding cudagraph_mode",
        re.compile(r"Overriding cudagraph_mode from \S+ to (?:CUDAGraphMode\.)?([A-Z_]+)"),
        lambda m: {"graph_mode": m[1].lower(), "decode_graphs": m[1] != "NONE"},
    ),
)


def settled(line: str) -> Facts:
    """The facts that a line settles; empty for most."""
    facts: Facts = {}
    for mark, pattern, facts_of in RULES:
        if mark in line and (match := pattern.search(line)):
            facts |= facts_of(match)
    return facts
