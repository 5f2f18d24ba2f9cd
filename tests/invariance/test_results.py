"""Two ways to one number: a tool's own importer and the grammar of names read the same from its results."""

import json
from pathlib import Path
from typing import Any

import pytest

from stepline.evidence.merge import merge
from stepline.sources.importers.registry import import_results
from stepline.sources.readers import table

FIELDS = (
    *(
        "concurrency",
        "request_rate_s",
        "tok_s",
        "requests_s",
        "tpot_ms",
        "tpot_p99_ms",
        "ttft_ms",
        "ttft_p50_ms",
    ),
    *(
        "e2e_ms",
        "chunk_gap_ms",
        "requests",
        "failed",
        "duration_s",
        "input_tokens",
        "output_tokens",
        "accept_length",
    ),
)
MADE: dict[str, Any] = {
    "backend": "vllm",
    "max_concurrency": 8,
    "request_rate": "inf",
    "duration": 40.0,
    "completed": 64,
    "failed": 0,
    "total_input_tokens": 32768,
    "total_output_tokens": 12800,
    "request_throughput": 1.6,
    "output_throughput": 320.0,
    "total_token_throughput": 1139.2,
    "mean_ttft_ms": 180.0,
    "median_ttft_ms": 150.0,
    "p99_ttft_ms": 900.0,
    "mean_tpot_ms": 24.0,
    "p99_tpot_ms": 31.0,
    "mean_itl_ms": 47.0,
    "mean_e2el_ms": 4950.0,
}
SHARED = Path(__file__).parent.parent.parent.parent / "shared"
RESULTS = sorted((SHARED / "field/files").rglob("*.json")) if (SHARED / "field/files").is_dir() else []


def compared(document: Any) -> list[str] | None:
    """Fields in which the two differ; None where no importer knows the document, or it counts its requests again."""
    found = import_results(document, "r.json")
    imported = None if found is None else merge(found)
    if imported is None or not imported.levels or imported.levels[0].tool == "guidellm":
        return None
    rows = table.rows_of(document)
    assert rows is not None
    read = table.read_rows(rows, "r.json").levels
    sides = [
        sorted(levels, key=lambda one: (one.concurrency or 0, one.tok_s or 0))
        for levels in (imported.levels, read)
    ]
    assert len(sides[0]) == len(sides[1])
    return [
        f"{name}: {getattr(ours, name)} {getattr(theirs, name)}"
        for ours, theirs in zip(*sides, strict=True)
        for name in FIELDS
        if getattr(ours, name) != pytest.approx(getattr(theirs, name))
    ]


def test_a_result_of_vllm_bench() -> None:
    assert compared(MADE) == []


@pytest.mark.parametrize("folder", sorted({path.parent for path in RESULTS}), ids=lambda path: path.name)
def test_results_of_others(folder: Path) -> None:
    known = 0
    for path in [one for one in RESULTS if one.parent == folder]:
        try:
            document = json.loads(path.read_text("utf-8"))
        except ValueError:
            continue
        differ = compared(document)
        known += differ is not None
        assert not differ, path
    if not known:
        pytest.skip("no result of a tool with an importer")
