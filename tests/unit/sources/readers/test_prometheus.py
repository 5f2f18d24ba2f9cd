"""Scrapes of SGLang and vLLM by version, several in one file, and the time each was taken."""

from pathlib import Path

import pytest

from stepline.evidence.metrics import EngineMetrics, growth
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.sources.read import read_one_run as read


def run_of(folder: Path, text: str, name: str = "metrics.txt") -> Run:
    (folder / name).write_text(text)
    return read([folder / name])


VLLM_OLD = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 5.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
# TYPE vllm:gpu_cache_usage_perc gauge
vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.25
# TYPE vllm:gpu_prefix_cache_queries counter
vllm:gpu_prefix_cache_queries_total{engine="0",model_name="m"} 400.0
vllm:gpu_prefix_cache_hits_total{engine="0",model_name="m"} 100.0
# TYPE vllm:time_per_output_token_seconds histogram
vllm:time_per_output_token_seconds_bucket{engine="0",le="0.01",model_name="m"} 7.0
vllm:time_per_output_token_seconds_sum{engine="0",model_name="m"} 12.5
vllm:time_per_output_token_seconds_count{engine="0",model_name="m"} 1000.0
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_sum{engine="0",model_name="m"} 8000.0
vllm:iteration_tokens_total_count{engine="0",model_name="m"} 1000.0
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",num_gpu_blocks="1000"} 1.0
http_requests_total{handler="/v1/completions",method="POST",status="5xx"} 2.0
http_requests_total{handler="/health",method="GET",status="5xx"} 9.0
"""
VLLM_BOTH = VLLM_OLD.replace(
    "# TYPE vllm:iteration",
    """# TYPE vllm:inter_token_latency_seconds histogram
vllm:inter_token_latency_seconds_sum{engine="0",model_name="m"} 12.5
vllm:inter_token_latency_seconds_count{engine="0",model_name="m"} 1000.0
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 400.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 100.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:num_preemptions_total{engine="0",model_name="m"} 4.0
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 10.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 15.0
# TYPE vllm:iteration""",
)


@pytest.mark.parametrize("text", [VLLM_OLD, VLLM_BOTH], ids=["0.8.5", "0.11: old and new names"])
def test_vllm_names(tmp_path: Path, text: str) -> None:
    record = run_of(tmp_path, text).metrics[0]
    assert (record.running, record.queued, record.pool_usage) == (8, 2, 0.25)
    assert (record.steps, record.step_tokens) == (1000, 8000)
    assert (record.itl_sum_s, record.itl_count) == (12.5, 1000)
    assert (record.prefix_queried_tokens, record.prefix_hit_share) == (400, 0.25)
    assert (record.kv_capacity_tokens, record.server_errors) == (16000, 2)
    if text is VLLM_BOTH:
        assert (record.retracted_requests, record.accept_length) == (4, 2.5)
    else:
        assert record.retracted_requests is None


def scrape(steps: int, prefix: str = "", stamp: str = "") -> str:
    return (
        f"{prefix}# TYPE vllm:iteration_tokens_total histogram\n"
        f'vllm:iteration_tokens_total_count{{engine="0"}} {steps}.0{stamp}\n'
        f'vllm:iteration_tokens_total_sum{{engine="0"}} {steps * 8}.0{stamp}\n'
    )


@pytest.mark.parametrize(
    ("text", "times"),
    [
        (scrape(1) + scrape(2), [None, None]),
        (scrape(1, "# scraped_at 1764433914.5\n") + scrape(2, "# scraped_at 1764433924.5\n"), [0.5, 10.5]),
        (scrape(1, "# 2025-11-29T16:31:54Z\n") + scrape(2, "# 2025-11-29T16:32:04Z\n"), [0.0, 10.0]),
        (scrape(1, stamp=" 1764433914000") + scrape(2, stamp=" 1764433924000"), [0.0, 10.0]),
        (scrape(1, "# HELP vllm:iteration_tokens_total x\n") + scrape(2), [None, None]),
        (scrape(1).split("\n", 1)[1] + scrape(2).split("\n", 1)[1], [None, None]),
    ],
    ids=["bare", "comment", "ISO comment", "stamped samples", "HELP", "grepped"],
)
def test_several_scrapes_in_one_file(tmp_path: Path, text: str, times: list[float | None]) -> None:
    records = run_of(tmp_path, text).metrics
    assert [record.steps for record in records] == [1, 2]
    assert [record.time_s for record in records] == [
        None if time is None else 1764433914 + time for time in times
    ]


@pytest.mark.parametrize(
    "name", ["metrics_1764433914.txt", "m-20251129-163154.prom", "2025-11-29T16:31:54Z.txt"]
)
def test_the_file_name_may_say_when(tmp_path: Path, name: str) -> None:
    assert run_of(tmp_path, scrape(1), name).metrics[0].time_s == 1764433914


def test_the_files_own_date_never_says_when(tmp_path: Path) -> None:
    assert run_of(tmp_path, scrape(1)).metrics[0].time_s is None


def test_growth_between_scrapes() -> None:
    origin = run_origin()
    before = EngineMetrics(
        origin=origin, time_s=1, steps=100, running=5, prefix_hit_tokens=10, prefix_queried_tokens=10
    )
    after = EngineMetrics(
        origin=origin, time_s=11, steps=350, running=7, prefix_hit_tokens=10, prefix_queried_tokens=50
    )
    between = growth(before, after)
    assert between is not None
    assert (between.steps, between.running, between.prefix_hit_share) == (250, 7, 0.0)
    assert between.generated_tokens is None
    assert growth(after, before) is None


def run_origin() -> Origin:
    return Origin("metrics.txt")


def test_damaged_lines_are_counted_and_the_first_is_named(tmp_path: Path) -> None:
    run = run_of(tmp_path, scrape(1) + 'vllm:generation_tokens_total{engine="0} 5\nvllm:x{} \n')
    assert run.metrics[0].steps == 1
    assert "metrics.txt:4" in run.doubts[0].text
