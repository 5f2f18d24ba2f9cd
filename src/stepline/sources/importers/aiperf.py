"""AIPerf's `profile_export_aiperf.json` and `profile_export.jsonl`; GenAI-Perf's JSON has the same shape.

Every metric carries its unit, which is read and not assumed. Its `inter_token_latency` is TPOT, its
`inter_chunk_latency` the gaps. The per-request file holds warm-up rows, which are left out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from stepline.evidence.load import LoadLevel
from stepline.evidence.origin import Origin
from stepline.sources.importers.values import at, mean, number, positive

TOOL = "aiperf"
_MS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "sec": 1e3, "seconds": 1e3}
"""Milliseconds in one of a unit."""


def recognises(document: object) -> bool:
    """True for the summary of one run."""
    return isinstance(document, Mapping) and all(
        isinstance(at(document, name), Mapping) and "unit" in document[name]
        for name in ("request_latency", "output_token_throughput")
    )


def recognises_rows(rows: object) -> bool:
    """True for the lines of the per-request file."""
    if not isinstance(rows, list) or not rows:
        return False
    first = rows[0]
    return isinstance(at(first, "metadata"), Mapping) and "request_start_ns" in first["metadata"]


def read_level(document: Mapping[str, Any], origin: Origin) -> LoadLevel:
    """The summary of one run."""

    def stat(name: str, key: str = "avg") -> float | None:
        metric = document.get(name)
        return positive(metric, key) if isinstance(metric, Mapping) else None

    def milliseconds(name: str, key: str = "avg") -> float | None:
        value, unit = stat(name, key), at(document, name, "unit")
        return value * _MS[unit] if value is not None and isinstance(unit, str) and unit in _MS else None

    tok_s, tpot = stat("output_token_throughput"), milliseconds("inter_token_latency")
    spread = stat("effective_decode_concurrency")
    duration = milliseconds("benchmark_duration")
    phase = _phase(document)
    done = stat("request_count")
    failed = number({"avg": at(document, "error_request_count", "avg")}, "avg")
    return LoadLevel(
        origin=origin,
        tool=TOOL,
        concurrency=positive(phase, "concurrency"),
        request_rate_s=positive(phase, "rate", "request_rate"),
        tok_s=tok_s,
        tok_s_per_request=stat("output_token_throughput_per_user"),
        tpot_ms=tpot,
        tpot_p50_ms=milliseconds("inter_token_latency", "p50"),
        tpot_p99_ms=milliseconds("inter_token_latency", "p99"),
        ttft_ms=milliseconds("time_to_first_token"),
        ttft_p50_ms=milliseconds("time_to_first_token", "p50"),
        ttft_p99_ms=milliseconds("time_to_first_token", "p99"),
        e2e_ms=milliseconds("request_latency"),
        chunk_gap_ms=milliseconds("inter_chunk_latency"),
        requests=None if done is None else int(done),
        failed=None if failed is None else int(failed),
        duration_s=None if duration is None else duration / 1000,
        input_tokens=stat("input_sequence_length"),
        output_tokens=stat("output_sequence_length"),
        decoding=spread or (tok_s * tpot / 1000 if tok_s and tpot else None),
        in_flight=stat("effective_concurrency"),
        accept_length=stat("spec_decode_acceptance_length"),
    )


def read_rows(rows: Sequence[Mapping[str, Any]], origin: Origin) -> LoadLevel | None:
    """The level behind a per-request file; None when no measured request went well."""
    measured = [row for row in rows if at(row, "metadata", "benchmark_phase") in ("profiling", None)]
    good = [row for row in measured if not row.get("error") and not at(row, "metadata", "was_cancelled")]
    spans = []
    for row in good:
        start, end = number(row["metadata"], "request_start_ns"), number(row["metadata"], "request_end_ns")
        if start is not None and end is not None:
            spans.append((start, end))
    if not spans:
        return None
    seconds = (max(end for _, end in spans) - min(start for start, _ in spans)) / 1e9
    ttfts, tpots = _column(good, "time_to_first_token"), _column(good, "inter_token_latency")
    latencies, lengths = _column(good, "request_latency"), _column(good, "output_sequence_length", time=False)
    decoding = sum(latencies) - sum(ttfts) if len(latencies) == len(ttfts) else None
    return LoadLevel(
        origin=origin,
        tool=TOOL,
        tok_s=sum(lengths) / seconds if lengths and seconds > 0 else None,
        tpot_ms=mean(tpots),
        ttft_ms=mean(ttfts),
        e2e_ms=mean(latencies),
        requests=len(good),
        failed=len(measured) - len(good),
        duration_s=seconds,
        input_tokens=mean(_column(good, "input_sequence_length", time=False)),
        output_tokens=mean(lengths),
        decoding=decoding / 1000 / seconds if decoding and seconds > 0 else None,
        in_flight=sum(end - start for start, end in spans) / 1e9 / seconds if seconds > 0 else None,
    )


def _column(rows: Sequence[Mapping[str, Any]], name: str, *, time: bool = True) -> list[float]:
    """One metric of every row that has it, times in ms."""
    values = []
    for row in rows:
        metric = at(row, "metrics", name)
        value = number(metric, "value") if isinstance(metric, Mapping) else None
        factor = _MS.get(str(metric.get("unit"))) if time and isinstance(metric, Mapping) else 1.0
        if value is not None and factor is not None:
            values.append(value * factor)
    return values


def _phase(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The measured phase of the load that was asked for; older files keep it flat."""
    phases = at(document, "input_config", "phases")
    if isinstance(phases, list):
        for phase in phases:
            if isinstance(phase, Mapping) and phase.get("kind") == "profiling":
                return phase
    flat = at(document, "input_config", "loadgen") or at(
        document, "input_config", "perf_analyzer", "stimulus"
    )
    return flat if isinstance(flat, Mapping) else {}
