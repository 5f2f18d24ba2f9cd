"""vLLM's settings: engine config dumps, `non-default args`, `/server_info`. One map of names for all."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from stepline.evidence.origin import Origin, Sourced
from stepline.evidence.server import ServerFacts
from stepline.sources.pyrepr import parse_keywords, parse_repr
from stepline.sources.redact import redact

T = TypeVar("T")
GIB = 1024**3

_DUMP = re.compile(
    r"Initializing (?:a V[01] LLM engine|an LLM engine) \(v(?P<version>[^)\s]+)\) with config: "
)
_ARGUMENTS = re.compile(r"(?:non-default args: |\bargs: Namespace)(?=[{(])")


def parse_dump(line: str) -> dict[str, Any] | None:
    """The resolved settings that the engine prints while it starts."""
    dump = _DUMP.search(line)
    if dump is None:
        return None
    return {**parse_keywords(line, dump.end()), "version": dump["version"]}


def parse_arguments(line: str) -> dict[str, Any] | None:
    """What was asked for on the command line: `non-default args: {…}`, before 0.9 `args: Namespace(…)`."""
    found = _ARGUMENTS.search(line)
    if found is None:
        return None
    text = line[found.end() :]
    settings = parse_keywords(text, 1) if text.startswith("(") else parse_repr(text)
    return settings if isinstance(settings, dict) else None


def facts_from_settings(settings: Mapping[str, Any], file: str, line: int | None = None) -> ServerFacts:
    """ServerFacts by vLLM's names; nested configs of `/server_info` are searched like flat ones."""
    flat = _flattened(settings)

    def say(value: T | None, name: str) -> Sourced[T] | None:
        return None if value is None else Sourced(value, Origin(file, line, name))

    def number(*names: str) -> Sourced[int] | None:
        for name in names:
            value = flat.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                return say(value, name)
        return None

    def word(*names: str) -> Sourced[str] | None:
        for name in names:
            value = flat.get(name)
            if isinstance(value, str) and value not in ("auto", "None", ""):
                return say(redact(value.removeprefix("torch.")), name)
        return None

    def switch(*names: str) -> Sourced[bool] | None:
        for name in names:
            if isinstance(flat.get(name), bool):
                return say(bool(flat[name]), name)
        return None

    eager = switch("enforce_eager")
    mode = _graph_mode(flat.get("cudagraph_mode"))
    sizes = _sizes(flat.get("cudagraph_capture_sizes"))
    if eager is not None and eager.value:
        graphs, sizes = say(value=False, name="enforce_eager"), ()
    elif mode is not None:
        graphs = say(value=mode != "none", name="cudagraph_mode")
    else:
        graphs = say(value=True, name="cudagraph_capture_sizes") if sizes else None
    cap = number("max_num_seqs")
    offloaded: Any = flat.get("cpu_offload_gb")
    drafts = number("num_speculative_tokens", "num_spec_tokens")
    tp, dp = number("tensor_parallel_size"), number("data_parallel_size")
    ep = None
    if flat.get("enable_expert_parallel") is True and tp is not None:
        ep = say(tp.value * (dp.value if dp else 1), "enable_expert_parallel")
    return ServerFacts(
        engine=say("vllm", "config"),
        version=word("version"),
        model=word("model", "model_tag"),
        tp=tp,
        dp=dp,
        pp=number("pipeline_parallel_size"),
        ep=ep,
        context_length=number("max_model_len", "max_seq_len"),
        max_running=cap,
        max_running_requested=cap,
        kv_dtype=word("kv_cache_dtype", "cache_dtype"),
        page_tokens=number("block_size"),
        offloaded_gib=say(float(offloaded), "cpu_offload_gb") if type(offloaded) in (int, float) else None,
        weight_dtype=word("dtype"),
        quantization=word("quantization"),
        dummy_weights=say(flat["load_format"] in ("dummy", "LoadFormat.DUMMY"), "load_format")
        if isinstance(flat.get("load_format"), str)
        else None,
        decode_graphs=graphs,
        decode_graph_sizes=say(sizes, "cudagraph_capture_sizes") if sizes else None,
        graph_mode=say(mode, "cudagraph_mode"),
        overlap_schedule=switch("async_scheduling"),
        prefix_cache=switch("enable_prefix_caching"),
        chunked_prefill_tokens=number("max_num_batched_tokens"),
        attention_backend=word("attention_backend"),
        moe_backend=word("moe_backend"),
        speculative=word("speculative_method")
        or (say("unnamed", "num_speculative_tokens") if drafts else None),
        draft_tokens=say(drafts.value + 1, "num_speculative_tokens") if drafts else None,
    )


def _flattened(settings: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """Settings with the members of nested configs beside them; the outermost spelling of a name wins."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and depth < 4 and name != "speculative_config":
            for inner, inner_value in _flattened(value, depth + 1).items():
                flat.setdefault(inner, inner_value)
    flat.update({name: value for name, value in settings.items() if not isinstance(value, Mapping)})
    speculative = settings.get("speculative_config")
    if isinstance(speculative, Mapping):
        flat["speculative_method"] = speculative.get("method")
        for name in ("num_speculative_tokens", "num_spec_tokens"):
            if name in speculative:
                flat[name] = speculative[name]
    return flat


def _graph_mode(value: object) -> str | None:
    """`FULL_AND_PIECEWISE` however it was printed: a name, an enum's repr or its JSON pair of numbers."""
    if not isinstance(value, str):
        return None
    name = re.search(r"\b(NONE|PIECEWISE|FULL_AND_PIECEWISE|FULL_DECODE_ONLY|FULL)\b", value)
    return name[1].lower() if name else None


def _sizes(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(size) is int for size in value):
        return ()
    return tuple(sorted(value))
