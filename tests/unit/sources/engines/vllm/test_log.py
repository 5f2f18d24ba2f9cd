# ruff: noqa: E501  # an engine's lines are as long as they are
"""vLLM's lines of V0 and V1 0.8.5, 0.11, 0.14, 0.20 and 0.33."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.evidence.run import Run
from stepline.sources.engines.vllm.log import VllmLog
from stepline.sources.engines.vllm.settings import GIB


def read(*lines: str) -> Run:
    log = VllmLog("server.log")
    for number, line in enumerate(lines, start=1):
        log.feed(number, line)
    return log.finish()


STATS: dict[str, tuple[str, dict[str, Any]]] = {
    "V0": (
        "INFO 04-09 11:17:53 metrics.py:455] Avg prompt throughput: 10.5 tokens/s, Avg generation throughput: 128.3 tokens/s, Running: 3 reqs, Swapped: 1 reqs, Pending: 7 reqs, GPU KV cache usage: 12.5%, CPU KV cache usage: 99.0%.",
        {"running": 3, "queued": 7, "retracted": 1, "pool_usage": 0.125, "tok_s": 128.3, "dp": None},
    ),
    "0.8.5": (
        "INFO 04-09 11:17:53 [loggers.py:87] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 128.3 tokens/s, Running: 3 reqs, Waiting: 2 reqs, GPU KV cache usage: 0.2%, Prefix cache hit rate: 22.3%",
        {
            "running": 3,
            "queued": 2,
            "pool_usage": 0.002,
            "prefix_hit_share": 0.223,
            "prefill_tok_s": 0.0,
            "dp": 0,
        },
    ),
    "0.11": (
        "(APIServer pid=1409788) INFO 04-09 11:17:53 [loggers.py:127] Engine 003: Avg prompt throughput: 1357.9 tokens/s, Avg generation throughput: 128.3 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.2%, Prefix cache hit rate: 22.3%, MM cache hit rate: 6.5%",
        {"dp": 3, "prefill_tok_s": 1357.9},
    ),
    "0.14: preemptions, external cache": (
        "(APIServer pid=1) INFO 04-09 11:17:53 [loggers.py:259] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 5.0 tokens/s, Running: 1 reqs, Waiting: 9 reqs, Preemptions: 4, GPU KV cache usage: 99.2%, Prefix cache hit rate: 0.0%, External prefix cache hit rate: 50.0%",
        {"queued": 9, "pool_usage": 0.992, "prefix_hit_share": 0.0},
    ),
    "0.20: deferred, several engines": (
        "(APIServer pid=1) INFO 04-09 11:17:53 [v1/metrics/loggers.py:271] 4 Engines Aggregated: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 5.0 tokens/s, Running: 16 reqs, Waiting: 9 reqs, Deferred: 2 reqs, GPU KV cache usage: 9.2%, Prefix cache hit rate: 0.0%",
        {"ranks_summed": 4, "dp": None, "deferred": 2, "running": 16},
    ),
    "0.33: KV fetch, empty prefix cache": (
        "(APIServer pid=1) INFO 04-09 11:17:53 [loggers.py:300] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 5.0 tokens/s, Running: 16 reqs, Waiting: 9 reqs, Deferred: 0 reqs, KV fetch: 1 waiting to start, 2 in progress, 3 completed waiting, Preemptions: 0, XPU KV cache usage: 9.2%",
        {"queued": 9, "pool_usage": 0.092, "prefix_hit_share": None},
    ),
}


@pytest.mark.parametrize("name", STATS)
def test_state_line(name: str) -> None:
    line, wants = STATS[name]
    run = read(line)
    assert len(run.decodes) == 1
    record = run.decodes[0]
    assert record.instrument == "interval"
    for attribute, value in wants.items():
        said = getattr(record, attribute)
        assert said == (pytest.approx(value) if isinstance(value, float) else value), attribute
    assert run.doubts == ()


def test_stamps_without_a_year_differ_by_what_passed_between() -> None:
    line = STATS["0.8.5"][0]
    run = read(line, line.replace("11:17:53", "11:18:03"))
    first, second = (record.time_s for record in run.decodes)
    assert first is not None
    assert second is not None
    assert second - first == 10


def test_a_collectors_stamp_gives_the_year() -> None:
    run = read("2026-04-09 13:17:53.380 | " + STATS["0.11"][0])
    assert run.decodes[0].time_s == 1775733473.0


def test_preemptions_are_events_with_their_number() -> None:
    run = read(
        STATS["0.14: preemptions, external cache"][0],
        STATS["0.33: KV fetch, empty prefix cache"][0],
        "WARNING 04-09 11:17:53 scheduler.py:1242] Sequence group cmpl-1 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. total_num_cumulative_preemption=1",
    )
    assert [(event.kind, event.amount) for event in run.events] == [("retraction", 4.0), ("retraction", 1.0)]


def test_acceptance_belongs_to_the_state_before_it() -> None:
    spec = "(APIServer pid=1) INFO 04-09 11:17:53 [metrics.py:101] SpecDecoding metrics: Mean acceptance length: 1.97, Accepted throughput: 63.00 tokens/s, Drafted throughput: 65.20 tokens/s, Accepted: 630 tokens, Drafted: 652 tokens, Per-position acceptance rate: 0.966, Avg Draft acceptance rate: 96.6%"
    run = read(STATS["0.8.5"][0], STATS["0.11"][0], spec, spec)
    assert [record.accept_length for record in run.decodes] == [None, 1.97]
    assert run.decodes[1].accept_rate == pytest.approx(0.966)
    old = "INFO 04-09 11:17:53 [metrics.py:60] SpecDecoding metrics: Draft acceptance rate: 45.2%, Accepted: 10 tokens, Drafted: 22 tokens"
    record = read(STATS["0.8.5"][0], old).decodes[0]
    assert (record.accept_length, record.accept_rate) == (None, pytest.approx(0.452))


def test_every_forward_of_the_iteration_details() -> None:
    run = read(
        "(EngineCore_DP1 pid=9) INFO 04-09 11:17:53 [core.py:400] Iteration(7): 0 context requests, 0 context tokens, 16 generation requests, 16 generation tokens, iteration elapsed time: 20.00 ms",
        "(APIServer pid=9) INFO 04-09 11:17:53 [loggers.py:400] Engine 002: Iteration(8): 1 context requests, 512 context tokens, 16 generation requests, 64 generation tokens, iteration elapsed time: 33.25 ms, GPU KV cache usage: 12.0%",
        "(EngineCore_DP1 pid=9) INFO 04-09 11:17:53 [core.py:400] Iteration(9): 0 context requests, 0 context tokens, 0 generation requests, 0 generation tokens, iteration elapsed time: 1.00 ms (dummy)",
    )
    plain, mixed = run.decodes
    assert (plain.dp, plain.running, plain.step_ms, plain.prefill_tokens, plain.tok_s) == (
        1,
        16,
        20.0,
        0,
        800.0,
    )
    assert (mixed.dp, mixed.step_ms, mixed.prefill_tokens, mixed.pool_usage) == (2, 33.25, 512, 0.12)
    assert mixed.tok_s is None
    assert {record.instrument for record in run.decodes} == {"step"}


def test_the_graph_table() -> None:
    prefix = "(APIServer pid=66) INFO 09-02 08:46:23 [compilation/cuda_graph.py:123] "
    run = read(
        prefix + "| Unpadded Tokens | Padded Tokens | Num Paddings | Runtime Mode | Count |",
        prefix + "|-----------------|---------------|--------------|--------------|-------|",
        prefix + "| 5               | 8             | 3            | FULL         | 116   |",
        "| 600             | 600           | 0            | CUDAGraphMode.NONE | 2 |",
    )
    assert [(use.tokens, use.padded_tokens, use.mode, use.count) for use in run.graph_uses] == [
        (5, 8, "full", 116),
        (600, 600, "none", 2),
    ]


DUMP = "(EngineCore_DP0 pid=16388) INFO 03-01 21:32:49 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='org/model', speculative_config=SpeculativeConfig(method='eagle', model='org/draft', num_spec_tokens=3), tokenizer='org/model', tokenizer_mode=auto, dtype=torch.bfloat16, max_seq_len=4096, load_format=auto, tensor_parallel_size=2, pipeline_parallel_size=1, data_parallel_size=2, quantization=compressed-tensors, enforce_eager=False, kv_cache_dtype=fp8_e4m3, structured_outputs_config=StructuredOutputsConfig(backend='auto'), enable_prefix_caching=True, chunked_prefill_enabled=True, compilation_config={{{}}}"
CONFIGS = {
    "0.11, JSON": '"level":3,"use_cudagraph":true,"cudagraph_mode":3,"cudagraph_capture_sizes":[16,8,4,2,1]',
    "0.14, repr": "'mode': <CompilationMode.VLLM_COMPILE: 3>, 'cudagraph_mode': <CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>, 'cudagraph_capture_sizes': [1, 2, 4, 8, 16], 'max_cudagraph_capture_size': 16",
}


@pytest.mark.parametrize("name", CONFIGS)
def test_the_config_dump_and_what_was_asked_for(name: str) -> None:
    server = read(
        "(APIServer pid=1) INFO 03-01 21:32:00 [api_server.py:1] vLLM API server version 0.11.0",
        "(APIServer pid=1) INFO 03-01 21:32:01 [utils.py:233] non-default args: {'model_tag': 'org/model', 'api_key': ['topsecretkey'], 'max_num_seqs': 4, 'max_model_len': 4096}",
        DUMP.format(CONFIGS[name]),
        DUMP.format(CONFIGS[name]).replace("DP0", "DP1"),
    )
    facts = server.server
    values = {
        field: value.value
        for field in facts.__struct_fields__
        if (value := getattr(facts, field)) is not None
    }
    assert values | {"graph_mode": None} == {
        "engine": "vllm",
        "version": "0.11.0",
        "model": "org/model",
        "tp": 2,
        "dp": 2,
        "pp": 1,
        "context_length": 4096,
        "max_running": 4,
        "max_running_requested": 4,
        "kv_dtype": "fp8_e4m3",
        "weight_dtype": "bfloat16",
        "quantization": "compressed-tensors",
        "dummy_weights": False,
        "decode_graphs": True,
        "decode_graph_sizes": (1, 2, 4, 8, 16),
        "graph_mode": None,
        "prefix_cache": True,
        "speculative": "eagle",
        "draft_tokens": 4,
    }
    assert server.doubts == ()
    assert "topsecretkey" not in msgspec.json.encode(server).decode()


START: dict[str, dict[str, Any]] = {
    "INFO 04-09 11:17:53 [kv_cache_utils.py:634] GPU KV cache size: 1,234,567 tokens": {
        "kv_capacity_tokens": 1234567
    },
    "INFO [x.py:1] GPU + host KV cache size: 99 tokens, Maximum concurrency for 32,768 tokens per request: 3.10x": {
        "kv_capacity_tokens": 99
    },
    "INFO [x.py:1] CPU KV cache size: 99 tokens": {"kv_capacity_tokens": None},
    "INFO [gpu_worker.py:227] Available KV cache memory: 52.50 GiB": {"kv_pool_bytes": 52.5 * GIB},
    "INFO [gpu_model_runner.py:1] Model loading took 14.9889 GiB and 3.216 seconds": {
        "weight_bytes": 14.9889 * GIB
    },
    "INFO model_runner.py:1] Loading model weights took 14.99 GB": {"weight_bytes": 14.99 * GIB},
    "INFO [scheduler.py:222] Chunked prefill is enabled with max_num_batched_tokens=2048.": {
        "chunked_prefill_tokens": 2048
    },
    "DEBUG [arg_utils.py:1] Defaulting max_num_seqs to 256 for OPENAI_API_SERVER usage context.": {
        "max_running": 256
    },
    "INFO [cuda.py:290] Using Flash Attention backend on V1 engine.": {
        "attention_backend": "flash_attention"
    },
    "INFO [cuda.py:351] Using FLASHINFER attention backend out of potential backends: ['FLASHINFER', 'TRITON_ATTN']": {
        "attention_backend": "flashinfer"
    },
    "INFO [fp8.py:1] Using MARLIN Fp8 MoE backend out of potential backends: ['MARLIN'].": {
        "moe_backend": "marlin"
    },
    "INFO [__init__.py:3643] Cudagraph is disabled under eager mode": {"decode_graphs": False},
    "WARNING [vllm.py:1] Enforce eager set, disabling torch.compile and CUDAGraphs. This is equivalent to setting -cc.mode=none": {
        "decode_graphs": False
    },
    "WARNING [x.py:1] Overriding cudagraph_mode from FULL_AND_PIECEWISE to PIECEWISE because of spec": {
        "graph_mode": "piecewise"
    },
    "INFO [vllm.py:834] Asynchronous scheduling is enabled.": {"overlap_schedule": True},
}


@pytest.mark.parametrize("line", START)
def test_start_up_line(line: str) -> None:
    server = read(line).server
    for attribute, value in START[line].items():
        said = getattr(server, attribute)
        assert (said.value if said else None) == (
            pytest.approx(value) if isinstance(value, float) else value
        ), attribute


def test_remarks_of_fallbacks_are_kept_once() -> None:
    line = "WARNING 04-09 11:17:53 [fused_moe.py:1] Using default MoE config. Performance might be sub-optimal! Config file not found at {}"
    run = read(line.format("/a.json"), line.format("/b.json"))
    assert [(notice.topic, notice.repeats) for notice in run.notices] == [("untuned", 2)]
    assert run.notices[0].text.startswith("Using default MoE config")


def test_damaged_lines_are_counted_and_the_first_is_named() -> None:
    run = read("x", STATS["0.8.5"][0][:120], STATS["0.8.5"][0])
    assert len(run.decodes) == 1
    assert "server.log:2" in run.doubts[0].text


tenths = st.integers(0, 10**7).map(lambda value: value / 10)


@given(
    running=st.integers(0, 10**6),
    waiting=st.integers(0, 10**6),
    made=tenths,
    prompt=tenths,
    usage=st.integers(0, 1000),
    engine=st.integers(0, 999),
)
def test_a_line_made_from_values_reads_back_as_those_values(
    *, running: int, waiting: int, made: float, prompt: float, usage: int, engine: int
) -> None:
    line = f"INFO 04-09 11:17:53 [loggers.py:87] Engine {engine:03d}: Avg prompt throughput: {prompt:.1f} tokens/s, Avg generation throughput: {made:.1f} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {usage / 10:.1f}%"
    record = read(line).decodes[0]
    assert (record.running, record.queued, record.dp) == (running, waiting, engine)
    assert (record.tok_s, record.prefill_tok_s) == (made, prompt)
    assert record.pool_usage == pytest.approx(usage / 1000)


WHOLE = STATS["0.33: KV fetch, empty prefix cache"][0]


@given(st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE)), st.text(max_size=6), st.text())
def test_no_damage_raises(start: int, end: int, put: str, noise: str) -> None:
    read(
        WHOLE[:start] + put + WHOLE[end:], noise, "Iteration(" + noise + " iteration elapsed time", DUMP[:end]
    )
