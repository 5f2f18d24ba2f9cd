"""What SGLang's start-up lines settle: pools, caps, weights, captured graphs (0.4.1 to 0.5.23).

Every reader takes a line with its mark and says which facts it settles. Sizes are in GB of 1024**3 bytes.
"""

import re
from collections.abc import Callable
from typing import Any

from stepline.sources.engines.sglang.settings import GIB
from stepline.sources.redact import redact

Facts = dict[str, Any]
"""Values by field of ServerFacts, without origins yet."""

_POOL_FIELDS = {
    "max_total_num_tokens": "kv_capacity_tokens",
    "max_running_requests": "max_running",
    "context_len": "context_length",
    "chunked_prefill_size": "chunked_prefill_tokens",
    "max_prefill_tokens": "max_prefill_tokens",
}
_POOL_FIELD = re.compile(r"\b(" + "|".join(_POOL_FIELDS) + r")=(\d{1,15})\b")
_WEIGHT = re.compile(r"Load weight end\..*?mem usage=([\d.]+) GB")
_WEIGHT_KIND = re.compile(r"Load weight end\..*?\bquant=([\w-]+)")
_KV = re.compile(r"KV Cache is allocated\..*?#tokens: (\d{1,15}),? ?(.*)")
_KV_SIZE = re.compile(r"\b(?:K|V|KV) size(?: \([^)]*\))?: ([\d.]+) ?GB")
_KV_DTYPE = re.compile(r"dtype: (?:torch\.)?(\w+)")
_GRAPH = re.compile(r"Capture (?:target decode |target verify )?(?:CUDA|cuda) graph")
_BS = re.compile(r"\bbs ?=? ?\[([\d, ]+)\]")
_BACKEND = re.compile(
    r"(?:Use |backend not (?:set|specified|explicitly specified)\. Use )([a-z0-9_]+) (?:attention )?backend"
)
_SPEC_CAP = re.compile(r"Max running requests is reset to (\d+) for speculative decoding")
_CUT_CAP = re.compile(r"max_running_requests was reduced from the requested (\d+) to (\d+)")


def _pools(line: str) -> Facts:
    return {_POOL_FIELDS[name]: int(value) for name, value in _POOL_FIELD.findall(line)}


def _weights(line: str) -> Facts:
    facts: Facts = {}
    if usage := _WEIGHT.search(line):
        facts["weight_bytes"] = _gib(usage[1])
    if kind := _WEIGHT_KIND.search(line):
        facts["quantization"] = kind[1]
    return facts


def _kv(line: str) -> Facts:
    facts: Facts = {}
    allocated = _KV.search(line)
    sizes = [_gib(value) for value in _KV_SIZE.findall(allocated[2])] if allocated else []
    if sizes and None not in sizes:
        facts["kv_pool_bytes"] = sum(size for size in sizes if size is not None)
    if dtype := _KV_DTYPE.search(line):
        facts["kv_dtype"] = dtype[1]
    return facts


def _graphs(line: str) -> Facts:
    sizes = _BS.search(line) if _GRAPH.search(line) else None
    if sizes is None:
        return {}
    listed = tuple(int(size) for size in sizes[1].split(",") if size.strip())
    return {"decode_graph_sizes": listed, "decode_graphs": True} if listed else {}


def _backend(line: str) -> Facts:
    named = _BACKEND.search(line)
    return {"attention_backend": redact(named[1])} if named else {}


def _speculative_cap(line: str) -> Facts:
    cap = _SPEC_CAP.search(line)
    return {"max_running": int(cap[1])} if cap else {}


def _reduced_cap(line: str) -> Facts:
    cap = _CUT_CAP.search(line)
    return {"max_running_requested": int(cap[1]), "max_running": int(cap[2])} if cap else {}


READERS: tuple[tuple[str, Callable[[str], Facts]], ...] = (
    ("max_total_num_tokens=", _pools),
    ("Load weight end", _weights),
    ("KV Cache is allocated", _kv),
    ("Capture ", _graphs),
    ("ttention backend", _backend),
    ("Max running requests is reset", _speculative_cap),
    ("max_running_requests was reduced", _reduced_cap),
)


def settled(line: str) -> Facts:
    """The facts that a line settles; empty for most."""
    facts: Facts = {}
    for mark, read in READERS:
        if mark in line:
            facts |= read(line)
    return {name: value for name, value in facts.items() if value is not None}


def _gib(text: str) -> float | None:
    try:
        return float(text) * GIB
    except ValueError:
        return None
