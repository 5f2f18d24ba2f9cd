"""inference-perf's summary and `stage_N_lifecycle_metrics.json` (`reportgen/base.py`), in seconds.

Its `inter_token_latency` is a gap between chunks as they were read, its `normalized_time_per_output_token`
has the first token in it; TPOT is `time_per_output_token`.
"""

from collections.abc import Mapping
from typing import Any

from stepline.evidence.load import LoadLevel
from stepline.evidence.origin import Origin
from stepline.sources.importers.values import at, number, positive

TOOL = "inference-perf"


def recognises(document: object) -> bool:
    """True for the report of one stage or of all."""
    return isinstance(at(document, "load_summary"), Mapping) and isinstance(
        at(document, "successes"), Mapping
    )


def read_level(document: Mapping[str, Any], origin: Origin) -> LoadLevel:
    """One stage."""
    load, good = document["load_summary"], document["successes"]

    def milliseconds(name: str, key: str = "mean") -> float | None:
        values = at(good, "latency", name)
        seconds = positive(values, key) if isinstance(values, Mapping) else None
        return None if seconds is None else seconds * 1000

    rates = at(good, "throughput")
    tok_s = positive(rates, "output_tokens_per_sec") if isinstance(rates, Mapping) else None
    tpot = milliseconds("time_per_output_token")
    done = number(good, "count")
    failed = number({"count": at(document, "failures", "count")}, "count")
    return LoadLevel(
        origin=origin,
        tool=TOOL,
        concurrency=positive(load, "concurrency"),
        request_rate_s=positive(load, "requested_rate"),
        tok_s=tok_s,
        tpot_ms=tpot,
        tpot_p50_ms=milliseconds("time_per_output_token", "median"),
        tpot_p99_ms=milliseconds("time_per_output_token", "p99"),
        ttft_ms=milliseconds("time_to_first_token"),
        ttft_p50_ms=milliseconds("time_to_first_token", "median"),
        ttft_p99_ms=milliseconds("time_to_first_token", "p99"),
        e2e_ms=milliseconds("request_latency"),
        chunk_gap_ms=milliseconds("inter_token_latency"),
        requests=None if done is None else int(done),
        failed=None if failed is None else int(failed),
        input_tokens=_mean(good, "prompt_len", "prompt_tokens"),
        output_tokens=_mean(good, "output_len", "output_tokens"),
        decoding=tok_s * tpot / 1000 if tok_s and tpot else None,
        client_queue_ms=_schedule_delay(load),
    )


def _mean(good: Mapping[str, Any], *names: str) -> float | None:
    found = (positive(values, "mean") for name in names if isinstance(values := at(good, name), Mapping))
    return next((value for value in found if value is not None), None)


def _schedule_delay(load: Mapping[str, Any]) -> float | None:
    delay = at(load, "schedule_delay")
    seconds = positive(delay, "mean") if isinstance(delay, Mapping) else None
    return None if seconds is None else seconds * 1000
