"""Results of other tools become load levels with our meaning; the keys are each tool's own."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.evidence.load import LoadLevel
from stepline.sources.importers.registry import import_results
from stepline.sources.read import read_one_run as read

# Eight slots under 32 streams: each request waits 1.2 s, then makes 101 tokens at 10 ms each.
ROWS = 64
TTFTS = [1.2] * ROWS
LATENCIES = [2.2] * ROWS
DURATION = ROWS / 8 * 1.0

VLLM: dict[str, Any] = {
    "date": "20260927-101500",
    "endpoint_type": "openai",
    "backend": "openai",
    "model_id": "m",
    "tokenizer_id": "m",
    "num_prompts": ROWS,
    "request_rate": "inf",
    "burstiness": 1.0,
    "max_concurrency": 32,
    "duration": DURATION,
    "completed": ROWS,
    "failed": 0,
    "total_input_tokens": ROWS * 16,
    "total_output_tokens": ROWS * 101,
    "request_throughput": 8.0,
    "request_goodput": None,
    "output_throughput": 808.0,
    "total_token_throughput": 936.0,
    "max_output_tokens_per_s": 900.0,
    "max_concurrent_requests": 64,
    "mean_ttft_ms": 1200.0,
    "median_ttft_ms": 1200.0,
    "p99_ttft_ms": 1200.0,
    "mean_tpot_ms": 10.0,
    "median_tpot_ms": 10.0,
    "p99_tpot_ms": 10.0,
    "mean_itl_ms": 20.0,
    "latencies": LATENCIES,
    "queue_times": [0.5] * ROWS,
}
DETAILED = {
    **VLLM,
    "completed": ROWS,
    "failed": 1,
    "input_lens": [16] * (ROWS + 1),
    "output_lens": [101] * ROWS + [0],
    "start_times": [0.0] * (ROWS + 1),
    "ttfts": [*TTFTS, 0.0],
    "latencies": [*LATENCIES, 9.0],
    "itls": [[0.02] * 50] * ROWS + [[]],
    "errors": [""] * ROWS + ["HTTP 500"],
}
SGLANG = {
    "tag": None,
    "backend": "sglang",
    "dataset_name": "random",
    "request_rate": float("inf"),
    "max_concurrency": 32,
    "random_input_len": 16,
    "random_output_len": 101,
    "server_info": {"tp_size": 4, "internal_states": [{"effective_max_running_requests_per_dp": 8}]},
    "duration": DURATION,
    "completed": ROWS,
    "total_input_tokens": ROWS * 16,
    "total_output_tokens": ROWS * 101,
    "total_output_tokens_retokenized": 7,
    "request_throughput": 8.0,
    "input_throughput": 128.0,
    "output_throughput": 808.0,
    "total_throughput": 936.0,
    "mean_e2e_latency_ms": 2200.0,
    "mean_ttft_ms": 1200.0,
    "mean_tpot_ms": 10.0,
    "mean_itl_ms": 10.1,
    "concurrency": 17.6,
    "accept_length": None,
    "max_concurrent_requests": 64,
    "errors": [""] * ROWS + ["boom"],
}


def stats(value: float) -> dict[str, Any]:
    return {"successful": {"mean": value, "median": value, "percentiles": {"p99": value}, "count": ROWS}}


def guide_request(start: float, end: float) -> dict[str, Any]:
    return {
        "prompt_tokens": 16,
        "output_tokens": 101,
        "request_latency": 2.2,
        "info": {
            "timings": {
                "request_start": start,
                "first_token_iteration": end - 1.0,
                "last_token_iteration": end,
                "request_end": end,
            }
        },
    }


GUIDELLM = {
    "metadata": {"version": 2, "guidellm_version": "0.8.1"},
    "config": {},
    "benchmarks": [
        {
            "config": {"strategy": {"type_": "concurrent", "streams": 32}},
            "scheduler_metrics": {"measure_start_time": 100.0, "measure_end_time": 108.0},
            "metrics": {
                "output_tokens_per_second": stats(654.5),
                "request_concurrency": stats(27.5),
                "request_latency": stats(2.2),
                "time_to_first_token_ms": stats(1200.0),
                "time_per_output_token_ms": stats(21.8),
                "inter_token_latency_ms": stats(10.0),
                "prompt_token_count": stats(16.0),
                "output_token_count": stats(101.0),
            },
            "requests": {
                "successful": [guide_request(90.0, 99.0)]
                + [guide_request(99.0 + row // 8, 101.0 + row // 8) for row in range(ROWS)],
                "errored": [{}],
                "incomplete": [],
            },
            "duration": 9.0,
        }
    ],
}


def metric(avg: float, unit: str) -> dict[str, Any]:
    return {"unit": unit, "avg": avg, "p50": avg, "p99": avg}


AIPERF = {
    "schema_version": "1.4",
    "input_config": {
        "phases": [{"kind": "warmup", "concurrency": 4}, {"kind": "profiling", "concurrency": 32}]
    },
    "request_throughput": metric(8.0, "requests/sec"),
    "request_latency": metric(2200.0, "ms"),
    "request_count": metric(ROWS, "requests"),
    "error_request_count": metric(1, "requests"),
    "time_to_first_token": metric(1.2, "s"),
    "inter_token_latency": metric(10_000.0, "us"),
    "inter_chunk_latency": metric(20.0, "ms"),
    "output_token_throughput": metric(808.0, "tokens/sec"),
    "output_sequence_length": metric(101, "tokens"),
    "input_sequence_length": metric(16, "tokens"),
    "benchmark_duration": metric(DURATION, "sec"),
    "effective_concurrency": metric(17.6, "requests"),
    "effective_decode_concurrency": metric(8.0, "requests"),
}


def aiperf_row(index: int, phase: str, error: object = None) -> dict[str, Any]:
    start = (100 + index // 8) * 1_000_000_000 - 1_200_000_000
    return {
        "metadata": {
            "request_start_ns": start,
            "request_end_ns": start + 2_200_000_000,
            "benchmark_phase": phase,
            "was_cancelled": False,
        },
        "metrics": {
            "request_latency": {"value": 2200.0, "unit": "ms"},
            "time_to_first_token": {"value": 1200.0, "unit": "ms"},
            "inter_token_latency": {"value": 10.0, "unit": "ms"},
            "output_sequence_length": {"value": 101, "unit": "tokens"},
            "input_sequence_length": {"value": 16, "unit": "tokens"},
            "inter_chunk_latency": {"value": [20.0] * 50, "unit": "ms"},
        },
        "error": error,
    }


AIPERF_ROWS = (
    [aiperf_row(-800, "warmup")]
    + [aiperf_row(index, "profiling") for index in range(800)]
    + [aiperf_row(9, "profiling", {"code": 500})]
)
INFERENCEX = {
    "hw": "h200",
    "conc": 32,
    "framework": "vllm",
    "model": "org/m",
    "precision": "fp8",
    "isl": 16,
    "osl": 101,
    "tp": 4,
    "ep": 1,
    "dp_attention": "false",
    "tput_per_gpu": 234.0,
    "output_tput_per_gpu": 202.0,
    "mean_ttft": 1.2,
    "mean_tpot": 0.010,
    "mean_itl": 0.02,
    "mean_e2el": 2.2,
    "mean_intvty": 100.0,
}
INFERENCE_PERF = {
    "load_summary": {"count": 65, "requested_rate": 8.0, "concurrency": 32, "schedule_delay": {"mean": 0.5}},
    "successes": {
        "count": ROWS,
        "latency": {
            "request_latency": {"mean": 2.2},
            "normalized_time_per_output_token": {"mean": 0.0218},
            "time_per_output_token": {"mean": 0.010, "median": 0.010},
            "time_to_first_token": {"mean": 1.2},
            "inter_token_latency": {"mean": 0.02},
        },
        "throughput": {"output_tokens_per_sec": 808.0},
        "prompt_len": {"mean": 16},
        "output_len": {"mean": 101},
    },
    "failures": {"count": 1},
}
DOCUMENTS: dict[str, Any] = {
    "vllm": VLLM,
    "vllm detailed": DETAILED,
    "sglang": SGLANG,
    "guidellm": GUIDELLM,
    "aiperf": AIPERF,
    "aiperf rows": AIPERF_ROWS,
    "inferencex": INFERENCEX,
    "inference-perf": INFERENCE_PERF,
}


def level_of(document: Any) -> LoadLevel:
    (run,) = import_results(document, "result.json") or ()
    assert run is not None
    assert len(run.levels) == 1
    return run.levels[0]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_level_means_the_same_from_every_tool(name: str) -> None:
    level = level_of(DOCUMENTS[name])
    assert level.tpot_ms == pytest.approx(10.0)
    assert level.ttft_ms == pytest.approx(1200.0)
    assert level.tok_s == pytest.approx(808.0, rel=0.02)
    assert level.decoding == pytest.approx(8.0, rel=0.05)
    assert level.e2e_ms == pytest.approx(2200.0)
    assert level.output_tokens == 101
    assert level.input_tokens == 16
    assert level.concurrency == (None if name == "aiperf rows" else 32)
    assert level.request_rate_s == (8.0 if name == "inference-perf" else None)


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name not in ("vllm", "inferencex")])
def test_failed_requests_are_counted_and_not_averaged(name: str) -> None:
    assert level_of(DOCUMENTS[name]).failed == 1


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_gap_between_chunks_is_never_called_a_token_gap(name: str) -> None:
    level = level_of(DOCUMENTS[name])
    if name == "sglang":
        assert (level.itl_ms, level.chunk_gap_ms) == (10.1, None)
    else:
        assert level.itl_ms is None
        assert level.chunk_gap_ms == (None if name in ("guidellm", "aiperf rows") else 20.0)


def test_times_before_sending_are_kept_apart() -> None:
    assert level_of(VLLM).client_queue_ms == 500.0
    assert level_of(INFERENCE_PERF).client_queue_ms == 500.0


def test_the_openai_route_of_sglangs_client_has_chunk_gaps() -> None:
    level = level_of({**SGLANG, "backend": "sglang-oai"})
    assert (level.itl_ms, level.chunk_gap_ms) == (None, 10.1)


def test_what_sglangs_client_saved_of_the_server() -> None:
    (run,) = import_results([SGLANG, SGLANG], "result.jsonl")
    assert run is not None
    assert len(run.levels) == 2
    assert run.server.max_running is not None
    assert run.server.max_running.value == 8


def test_a_fixed_batch_is_a_step() -> None:
    row = {
        "run_name": "x",
        "batch_size": 16,
        "input_len": 1024,
        "output_len": 100,
        "latency": 2.0,
        "output_throughput": 700.0,
        "last_gen_throughput": 810.0,
        "steady_state_output_throughput": 800.0,
        "acc_length": -1,
    }
    (run,) = import_results([row], "result.jsonl")
    assert run is not None
    step = run.step_rows[0]
    assert (step.running, step.tok_s, step.context_tokens) == (16, 800, 1074)
    assert step.step_ms == pytest.approx(20.0)


def test_files_are_told_by_content(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(VLLM))
    (tmp_path / "b.jsonl").write_text(json.dumps(SGLANG) + "\n" + json.dumps(SGLANG) + "\n")
    (tmp_path / "c.json").write_text(json.dumps(GUIDELLM))
    (tmp_path / "d.json").write_text(json.dumps(AIPERF))
    (tmp_path / "d.jsonl").write_text("\n".join(json.dumps(row) for row in AIPERF_ROWS))
    run = read([tmp_path])
    tools = [level.tool for level in run.levels]
    assert sorted(str(tool) for tool in tools) == [
        "aiperf",
        "guidellm",
        "sglang bench_serving",
        "sglang bench_serving",
        "vllm bench serve",
    ]
    assert "Infinity" in (tmp_path / "b.jsonl").read_text()


values = st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)


@given(st.sampled_from(sorted(DOCUMENTS)), st.data())
def test_no_wrong_value_raises(name: str, data: st.DataObject) -> None:
    document = DOCUMENTS[name]
    if isinstance(document, list):
        row = dict(document[1])
        row[data.draw(st.sampled_from(sorted(row)))] = data.draw(values)
        import_results([row], "x")
        return
    changed = json.loads(json.dumps(document))
    place = changed
    while True:
        key = data.draw(st.sampled_from(sorted(place)))
        if isinstance(place[key], dict) and place[key] and data.draw(st.booleans()):
            place = place[key]
            continue
        place[key] = data.draw(values)
        break
    import_results(changed, "x")
