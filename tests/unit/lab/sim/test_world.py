"""The simulated world against what real engines measured (calibration captures, tests/data/h200-sglang-2)."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stepline.errors import UnknownFact, UsageError
from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.lab.sim.calibration import load_calibration
from stepline.lab.sim.captures.load import VirtualClient
from stepline.lab.sim.captures.sweep import Level
from stepline.lab.sim.engine import Engine
from stepline.lab.sim.faults import FAULTS, PAIRS, find_fault
from stepline.lab.sim.shape import shape_of
from stepline.lab.sim.start import Started, start
from stepline.lab.sim.virtual import Virtual
from stepline.lab.sim.world import Cost, Disturbance, Work, World

REAL = Path("tests/data/h200-sglang-2")
LLAMA = find_model("llama-3.1-8b").config


def started(engine: str = "sglang", fault: str = "healthy", seed: int = 1, **changes: Any) -> Started:
    planted, strength = find_fault(fault)
    return start(
        engine, "m", LLAMA, find_gpu("h200"), fault=planted, strength=strength, seed=seed, changes=changes
    )


def serve(one: Started, *levels: Level) -> list[dict[str, Any]]:
    client = VirtualClient(Virtual(Engine(one.scheduler, one.front)), seed=1, epoch_s=0.0)
    return [client.level(level) for level in levels]


def level(streams: int, input_tokens: int = 512, output_tokens: int = 192) -> Level:
    return Level(concurrency=streams, input_tokens=input_tokens, output_tokens=output_tokens, seconds=8.0)


def test_a_healthy_server_is_as_fast_as_the_real_one() -> None:
    real = {row["C"]: row for row in json.loads((REAL / "healthy_8b/sweep.json").read_text())}
    rows = serve(started(), *(level(streams) for streams in real))
    for row in rows:
        assert row["tok_s"] == pytest.approx(real[row["C"]]["tok_s"], rel=0.06), row["C"]
        assert row["tpot_ms"] == pytest.approx(real[row["C"]]["tpot_ms"], rel=0.06), row["C"]


def test_eager_batches_above_the_graphs_cost_what_they_cost_the_real_one() -> None:
    # The host's speed differs between starts (22.6 to 33.6 ms in one capture), hence the width.
    real = {row["C"]: row for row in json.loads((REAL / "graph_cap8/sweep.json").read_text())}
    for row in serve(started(fault="H303:3"), level(8), level(16)):
        assert row["chunk_gap_ms"] == pytest.approx(real[row["C"]]["chunk_gap_ms"], rel=0.3), row["C"]


def test_attention_without_splits_is_as_slow_as_the_real_one() -> None:
    half = LLAMA | {"num_hidden_layers": 16}
    fault, strength = find_fault("K402:3")
    one = start("sglang", "m", half, find_gpu("h200"), fault=fault, strength=strength, seed=1)
    row = serve(one, msgspec.structs.replace(level(1, 24_000, 200), seconds=20.0))[0]
    assert row["chunk_gap_ms"] == pytest.approx(38.25, rel=0.08)


def test_the_same_seed_gives_the_same_server_and_another_seed_another() -> None:
    first, again, other = (serve(started(seed=seed), level(4))[0] for seed in (1, 1, 2))
    assert first == again
    assert first["tpot_ms"] != other["tpot_ms"]
    assert first["tpot_ms"] == pytest.approx(other["tpot_ms"], rel=0.06)


def world(disturbance: Disturbance, gpu: str = "h200") -> World:
    known = msgspec.structs.replace(load_calibration(), step_jitter=0.0, hiccup_share=0.0, server_spread=0.0)
    settings = started().scheduler.settings
    return World(shape_of(LLAMA), find_gpu(gpu), settings, disturbance, known, seed=1)


def test_a_planted_cost_appears_in_the_step_and_nowhere_else() -> None:
    work = Work(decoding=16, live_tokens=16 * 600)
    plain = world(Disturbance()).price(work).gpu_s
    assert world(Disturbance(linear_ms=0.5)).price(work).gpu_s == pytest.approx(plain + 16 * 0.5e-3)
    by_context = world(Disturbance(context_us_per_ktoken=2.0)).price(work).gpu_s
    assert by_context == pytest.approx(plain + 16 * 131.072 * 2e-6)
    assert world(Disturbance(clock_share=0.5)).price(work).gpu_s == pytest.approx(2 * plain)
    prefill = Work(parts=((512, 0),))
    assert world(Disturbance(linear_ms=0.5)).price(prefill) == world(Disturbance()).price(prefill)


def test_experts_are_read_as_uniform_routing_draws_them() -> None:
    shape = shape_of(find_model("qwen3-30b-a3b").config)
    assert shape.experts_read(1) == pytest.approx(8)
    assert shape.experts_read(10_000) == pytest.approx(128)
    assert shape.weight_bytes == pytest.approx(61e9, rel=0.02)  # 30.5 billion parameters of two bytes


def test_what_cannot_be_simulated_is_refused() -> None:
    with pytest.raises(UnknownFact, match="plain transformers"):
        shape_of(find_model("deepseek-v4-flash").config)
    planted, strength = find_fault("healthy")
    config = find_model("llama-3.1-70b").config
    with pytest.raises(UsageError, match="leaves too little"):
        start("sglang", "m", config, find_gpu("h100"), fault=planted, strength=strength, seed=0)
    with pytest.raises(UsageError, match="no fault is called"):
        find_fault("X999")
    with pytest.raises(UsageError, match="strength"):
        find_fault("S201:4")


def test_every_fault_can_be_started_at_every_strength_on_both_engines() -> None:
    for engine in ("sglang", "vllm"):
        for fault in FAULTS:
            for strength in fault.strengths:
                one = start(engine, "m", LLAMA, find_gpu("h200"), fault=fault, strength=strength, seed=0)
                assert one.scheduler.settings.kv_tokens > 0


def priced(disturbance: Disturbance, tp: int = 4, **work: Any) -> Cost:
    known = msgspec.structs.replace(load_calibration(), step_jitter=0.0, hiccup_share=0.0, server_spread=0.0)
    settings = msgspec.structs.replace(started().scheduler.settings, tp=tp)
    shape = shape_of(LLAMA, tp)
    return World(shape, find_gpu("h200"), settings, disturbance, known, seed=1).price(Work(**work))


def test_a_slow_path_costs_each_all_reduce_and_by_what_is_sent() -> None:
    few, many = ({"decoding": n, "live_tokens": 600} for n in (1, 64))
    late = Disturbance(exchange_us=100.0)
    assert priced(late, **few).gpu_s - priced(Disturbance(), **few).gpu_s == pytest.approx(64 * 100e-6)
    narrow = Disturbance(exchange_bytes_s=10e9)
    sent = [priced(narrow, **work).gpu_s - priced(Disturbance(), **work).gpu_s for work in (few, many)]
    assert sent[1] == pytest.approx(64 * sent[0])
    assert priced(late, tp=1, **few) == priced(Disturbance(), tp=1, **few)


def test_ranks_wait_for_the_late_one_in_their_all_reduces() -> None:
    parts = priced(Disturbance(late_share=0.5), decoding=16, live_tokens=9600).parts
    late, other = parts.of_rank(late=True), parts.of_rank(late=False)
    assert late.total == pytest.approx(other.total) == pytest.approx(parts.total)
    assert late.own == pytest.approx(1.5 * other.own)
    assert other.reduces == pytest.approx(late.reduces + 0.5 * other.own)


def test_attention_operator_by_operator_costs_by_the_context() -> None:
    slow, plain = Disturbance(unfused_times=20.0), Disturbance()
    short, long = ({"decoding": 16, "live_tokens": n} for n in (1_600, 16_000))
    cost = [priced(slow, **work).gpu_s - priced(plain, **work).gpu_s for work in (short, long)]
    assert cost[1] == pytest.approx(10 * cost[0])
    assert priced(slow, **long).parts.cache == 0.0


def test_weights_in_32_bits_are_read_twice_as_long_and_take_room_from_the_pool() -> None:
    plain, wide = started(), started(fault="K405:2")
    assert wide.shape.weight_bytes > 1.9 * plain.shape.weight_bytes
    taken = (wide.shape.weight_bytes - plain.shape.weight_bytes) / plain.shape.kv_bytes_per_token
    assert plain.scheduler.settings.kv_tokens - wide.scheduler.settings.kv_tokens == pytest.approx(
        taken, rel=0.01
    )
    with pytest.raises(UsageError, match="32 bits"):
        started(fault="K405:3", kv_tokens=100_000)


def test_a_capped_level_is_measured_once_its_short_first_answers_are_over() -> None:
    capped = started(fault="S201:3")
    row = serve(capped, level(64))[0]
    low, high = row["window_unix_s"]
    assert high - low == pytest.approx(6.0)
    # Four at a time make 64 answers of 97 tokens on average before that, and are looked at from time to time.
    assert (low - row["start_unix_s"]) * row["tok_s"] == pytest.approx(64 * 97, rel=0.15)


def test_pairs_plant_both_faults() -> None:
    both, strength = find_fault("K405+S201:3")
    assert (both.expected, both.systems, strength) == ("K405+S201", "small", 3)
    one = start("sglang", "m", LLAMA, find_gpu("h200"), fault=both, strength=3, seed=0)
    assert one.scheduler.settings.max_running == 4
    assert one.disturbance.wide_math == "fp32"
    assert all(find_fault(f"{first}+{second}") for first, second in PAIRS)
