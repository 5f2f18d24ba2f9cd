"""What Prometheus' HTTP API answers: an instant vector, or a matrix of a range query."""

from collections.abc import Mapping
from typing import Any

from stepline.errors import UnreadableEvidence
from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.run import EvidenceFile, Run
from stepline.sources.readers.prometheus import engine_metrics

MAX_TIMES = 20_000


def recognises(document: object) -> bool:
    """True for an answer of the query API."""
    return (
        isinstance(document, Mapping)
        and isinstance(document.get("data"), Mapping)
        and document["data"].get("resultType") in ("matrix", "vector")
    )


def read_answer(document: Mapping[str, Any], file: str) -> Run:
    """One record for each engine and time; series that lost their name to a function cannot be told.

    Raises:
        UnreadableEvidence: when no series is a metric of a known engine.
    """
    at: dict[float, list[tuple[str, Mapping[str, str], float]]] = {}
    unnamed = 0
    listed = document["data"].get("result")
    for series in listed if isinstance(listed, list) else []:
        labels = series.get("metric") if isinstance(series, Mapping) else None
        if not isinstance(labels, Mapping) or not isinstance(labels.get("__name__"), str):
            unnamed += 1
            continue
        values = series.get("values")
        for pair in values if isinstance(values, list) and values else [series.get("value")]:
            if sample := _sample(pair):
                at.setdefault(sample[0], []).append((labels["__name__"], labels, sample[1]))
    if len(at) > MAX_TIMES:
        raise UnreadableEvidence(f"{file}: over {MAX_TIMES:,} points in time; query with a longer step")
    records: list[EngineMetrics] = []
    for time_s, samples in sorted(at.items()):
        records += engine_metrics(samples, Origin(file, None, f"{time_s:g}"), time_s)
    if not records:
        raise UnreadableEvidence(
            f"{file}: no series of a known engine ({unnamed} without a name); query the metrics themselves, "
            "not a function of them"
        )
    note = f"{unnamed} series without a name left out" if unnamed else None
    evidence = EvidenceFile(
        path=file, kind="metrics scrape", note=note, records=len(records), damaged=unnamed
    )
    return Run(files=(evidence,), metrics=tuple(records))


def _sample(pair: object) -> tuple[float, float] | None:
    """(time, value) of `[1764433914.2, "3"]`."""
    if not isinstance(pair, list) or len(pair) != 2:
        return None
    try:
        return float(pair[0]), float(pair[1])
    except (TypeError, ValueError):
        return None
