"""InferenceX's `agg_<name>.json` (`utils/process_result.py`): vLLM's keys in seconds, throughput per GPU.

`intvty` keys are 1 / TPOT and say nothing new.
"""

from collections.abc import Mapping
from typing import Any

from stepline.evidence.load import LoadLevel
from stepline.evidence.origin import Origin, Sourced
from stepline.evidence.server import ServerFacts
from stepline.sources.importers.values import number, positive, whole

TOOL = "inferencex"


def recognises(document: object) -> bool:
    """True for one aggregated result."""
    return isinstance(document, Mapping) and {"hw", "conc", "framework", "tput_per_gpu"} <= set(document)


def read_level(document: Mapping[str, Any], origin: Origin) -> LoadLevel:
    """One configuration at one concurrency."""
    gpus = _gpus(document)
    per_gpu = positive(document, "output_tput_per_gpu")
    tok_s = per_gpu * gpus if per_gpu and gpus else None
    tpot = _ms(document, "mean_tpot")
    return LoadLevel(
        origin=origin,
        tool=TOOL,
        concurrency=positive(document, "conc"),
        tok_s=tok_s,
        tpot_ms=tpot,
        tpot_p50_ms=_ms(document, "median_tpot"),
        tpot_p99_ms=_ms(document, "p99_tpot"),
        ttft_ms=_ms(document, "mean_ttft"),
        ttft_p50_ms=_ms(document, "median_ttft"),
        ttft_p99_ms=_ms(document, "p99_ttft"),
        e2e_ms=_ms(document, "mean_e2el"),
        chunk_gap_ms=_ms(document, "mean_itl"),
        input_tokens=positive(document, "isl"),
        output_tokens=positive(document, "osl"),
        decoding=tok_s * tpot / 1000 if tok_s and tpot else None,
    )


def read_server(document: Mapping[str, Any], file: str) -> ServerFacts:
    """What the result says about the server."""

    def word(name: str) -> Sourced[str] | None:
        value = document.get(name)
        return Sourced(value, Origin(file, None, name)) if isinstance(value, str) and value else None

    def count(name: str) -> Sourced[int] | None:
        value = whole(document, name)
        return Sourced(value, Origin(file, None, name)) if value else None

    attention = document.get("dp_attention")
    on = str(attention).lower() == "true" if attention is not None else None
    return ServerFacts(
        engine=_engine(word("framework")),
        model=word("model") or word("infmax_model_prefix"),
        gpu=word("hw"),
        tp=count("tp"),
        pp=count("pp"),
        ep=count("ep"),
        dp_attention=None if on is None else Sourced(on, Origin(file, None, "dp_attention")),
        quantization=word("precision"),
    )


def _engine(framework: Sourced[str] | None) -> Sourced[str] | None:
    """The engine behind a framework name such as `dynamo-sglang` or `vllm`."""
    if framework is None:
        return None
    known = next((name for name in ("sglang", "vllm", "trt") if name in framework.value.lower()), None)
    return Sourced("tensorrt-llm" if known == "trt" else known or framework.value, framework.origin)


def _gpus(document: Mapping[str, Any]) -> float | None:
    """GPUs behind the per-GPU figures; a disaggregated deployment counts both sides."""
    both = [number(document, name) for name in ("num_prefill_gpu", "num_decode_gpu")]
    if all(both):
        return sum(value or 0.0 for value in both)
    tp = number(document, "tp")
    return None if tp is None else tp * (number(document, "pp") or 1.0)


def _ms(document: Mapping[str, Any], name: str) -> float | None:
    seconds = positive(document, name)
    return None if seconds is None else seconds * 1000
