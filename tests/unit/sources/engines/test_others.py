# ruff: noqa: E501  # an engine's lines are as long as they are
"""Engines that are read in part: what each line says, and what is not claimed."""

import gzip
import json
from pathlib import Path

import pytest

from stepline.evidence.run import Run
from stepline.sources.read import read_one_run as read


def run_of(folder: Path, text: str, name: str = "server.log") -> Run:
    (folder / name).write_text(text)
    return read([folder / name])


TRT = "[TRT-LLM] [I] [timestamp] iter = {i}, global_rank = 0, rank = {rank}, num_scheduled_requests = 9, kv_cache_util = 0.25, currank_total_requests = 9/9, host_step_time = 20.0ms, prev_device_step_time = {device}, timestamp = 2025-11-29 16:31:54, states = {{'num_ctx_requests': 1, 'num_ctx_tokens': 512, 'num_generation_tokens': 8}}\n"


def test_tensorrt_llm_iterations(tmp_path: Path) -> None:
    text = TRT.format(i=1, rank=0, device="15.0ms") + TRT.format(i=2, rank=0, device="N/A")
    run = run_of(tmp_path, text + TRT.format(i=2, rank=1, device="15.0ms") + "iter = x, host_step_time = \n")
    first, second = run.decodes
    assert (first.running, first.step_ms, first.prefill_tokens, first.pool_usage) == (8, 20.0, 512, 0.25)
    assert (first.instrument, first.forward_busy, first.time_s) == ("step", 0.75, 1764433914)
    assert second.forward_busy is None
    assert run.files[0].damaged == 1
    assert run.server.engine is not None
    assert run.server.engine.value == "tensorrt-llm"


def test_tensorrt_llm_metrics(tmp_path: Path) -> None:
    row = {
        "iter": 1,
        "iterLatencyMS": 12.5,
        "numActiveRequests": 9,
        "numQueuedRequests": 3,
        "inflightBatchingStats": {"numContextRequests": 1, "numCtxTokens": 100},
        "kvCacheStats": {"maxNumBlocks": 100, "usedNumBlocks": 25, "tokensPerBlock": 32},
    }
    run = run_of(tmp_path, json.dumps([row]), "metrics.json")
    step = run.decodes[0]
    assert (step.running, step.queued, step.step_ms, step.pool_usage) == (8, 3, 12.5, 0.25)
    assert run.metrics[0].kv_capacity_tokens == 3200


def test_llama_cpp_requests_claim_no_batch(tmp_path: Path) -> None:
    text = (
        "srv    load_model: initializing slots, n_slots = 4\n"
        "slot print_timing: id  0 | task 1 | prompt eval time = 99.00 ms / 10 tokens ( 9.90 ms per token, 101.01 tokens per second)\n"
        "slot print_timing: id  0 | task 1 |        eval time = 3699.80 ms / 155 tokens ( 24.00 ms per token, 41.62 tokens per second)\n"
        "slot print_timing: id  1 | task 2 |        eval time = 100.00 ms / 155 tokens ( 26.00 ms per token, 41.62 tokens per second)\n"
    )
    run = run_of(tmp_path, text)
    assert run.decodes == ()
    assert (run.levels[0].requests, run.levels[0].tpot_ms) == (2, 25.0)
    assert run.levels[0].concurrency is None
    assert run.server.max_running is not None
    assert run.server.max_running.value == 4


def test_lmdeploy(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        "[2025-11-29 16:31:54 DP0] Avg thr (in/out): 10.0 / 800.5 tokens/s, Server (succeeded/failed/routed/waiting): 1 / 0 / 8 / 0, Engine (running/waiting): 8 / 2, KV cache: 12.5%, Prefix cache hit rate: 50.0%\n",
    )
    record = run.decodes[0]
    assert (record.running, record.queued, record.tok_s, record.pool_usage) == (8, 2, 800.5, 0.125)
    assert (record.instrument, record.dp, record.prefix_hit_share) == ("interval", 0, 0.5)


def test_transfers_between_servers(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        "2025-05-28T21:32:46.158Z  INFO nixl.write_blocks: Time to init xfer: 1800.3 ms   \n"
        "2025-05-28T21:32:46.158Z  INFO nixl.write_blocks: Total time for write: 1803.43 ms   \n",
    )
    assert [transfer.duration_ms for transfer in run.transfers] == [1803.43]
    mooncake = "I0518 08:57:40.15 1 transfer_engine.cpp:364] [Metrics] Transfer Engine Throughput: 5.32 MB/s (over last 5s)\n"
    batch = "[2025-05-18 08:57:40 DP8 TP8] Prefill batch. #new-seq: 7, #new-token: 241, #cached-token: 0, token usage: 0.07, #running-req: 0, #queue-req: 0\n"
    assert run_of(tmp_path, mooncake + batch).transfers[0].bytes_s == pytest.approx(5.32e6)


@pytest.mark.parametrize(
    ("text", "running", "queued"),
    [
        ("llamacpp:requests_processing 3\nllamacpp:requests_deferred 2\n", 3, 2),
        ('tgi_batch_current_size 3\ntgi_queue_size{x="1"} 2\n', 3, 2),
        ("lmdeploy:num_requests_running 3\nlmdeploy:num_requests_waiting 2\n", 3, 2),
        ('dynamo_frontend_queued_requests{model="m"} 2\n', None, 2),
    ],
    ids=["llama.cpp", "TGI", "LMDeploy", "Dynamo"],
)
def test_metrics(tmp_path: Path, text: str, running: float | None, queued: float) -> None:
    record = run_of(tmp_path, "# TYPE x gauge\n" + text, "metrics.txt").metrics[0]
    assert (record.running, record.queued) == (running, queued)


def test_a_range_query(tmp_path: Path) -> None:
    def series(name: str, *values: str) -> dict[str, object]:
        pairs = [[1764433914 + 10 * n, value] for n, value in enumerate(values)]
        return {"metric": {"__name__": name, "engine": "0"}, "values": pairs}

    result = [
        series("vllm:num_requests_running", "3", "5"),
        series("vllm:iteration_tokens_total_count", "100", "NaN"),
        {"metric": {}, "values": [[1, "2"]]},
    ]
    document = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    run = run_of(tmp_path, json.dumps(document), "range.json")
    assert [(record.time_s, record.running, record.steps) for record in run.metrics] == [
        (1764433914, 3, 100),
        (1764433924, 5, None),
    ]
    assert run.files[0].damaged == 1


def test_rotated_logs_are_read_oldest_first_with_progress(tmp_path: Path) -> None:
    line = "[2025-11-29 16:31:54] Decode batch, #running-req: {}, gen throughput (token/s): 8.00, #queue-req: 0\n"
    (tmp_path / "server.log").write_text(line.format(4))
    (tmp_path / "server.log.1").write_text(line.format(3))
    (tmp_path / "server.log.2.gz").write_bytes(gzip.compress(line.format(2).encode()))
    (tmp_path / "server.log.10.gz").write_bytes(gzip.compress(line.format(1).encode()))
    told: list[tuple[int, int]] = []
    run = read([tmp_path], on_bytes=lambda done, total: told.append((done, total)))
    assert [record.running for record in run.decodes] == [1, 2, 3, 4]
    total = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert told[-1] == (total, total)
    assert told == sorted(told)
    assert len({done for done, _ in told}) >= 4
