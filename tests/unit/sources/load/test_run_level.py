"""Whole levels against servers that behave."""

import asyncio
import os
import pickle
import time
from itertools import pairwise
from statistics import mean, median

import msgspec
import pytest
import uvloop

from stepline.errors import SteplineError, UsageError
from stepline.sources.engines.sglang.dialect import NativeGenerate
from stepline.sources.load.dialect import Ask, Dialect
from stepline.sources.load.drive import run_level
from stepline.sources.load.level import Address, LevelPlan, LevelResult, Progress
from stepline.sources.openai_dialect import Completions
from tests.unit.sources.load.servers import NativeDialect, serving, streaming


def test_a_closed_loop_says_what_the_server_did() -> None:
    async def drive() -> None:
        told: list[Progress] = []
        wrote: list[list[float]] = []
        plan = LevelPlan(concurrency=4, input_tokens=32, output_tokens=40, together_tokens=40, seconds=1.5)
        before = time.time()
        async with serving(streaming(ttft_s=0.02, gap_s=0.005, wrote=wrote)) as (server, address):
            result = await run_level(address, NativeDialect(), plan, on_progress=told.append)
            await asyncio.sleep(0.05)
            assert not server.open, "the level's end closes every connection"
            assert server.dropped > 0, "and so tells the server to stop"
        level = result.level
        assert result.failures.first is None
        assert level.failed == 0
        assert level.requests is not None
        assert level.requests >= 8
        assert server.connections == 4, "connections are kept for the next request"
        # The truth is what the server wrote and when: a busy machine delays both ends alike.
        asked = [request.body["max_new_tokens"] for request in server.requests]
        whole = [times for (_, *times), tokens in zip(wrote, asked, strict=True) if len(times) == tokens]
        tpot_ms = 1000 * mean((times[-1] - times[0]) / (len(times) - 1) for times in whole)
        gap_ms = 1000 * median(after - before for _, *times in wrote for before, after in pairwise(times))
        firsts_ms = [1000 * (times[1] - times[0]) for times in wrote[4:] if len(times) > 1]
        assert level.tpot_ms == pytest.approx(tpot_ms, rel=0.05)
        assert level.ttft_ms == pytest.approx(mean(firsts_ms), abs=5)
        assert level.itl_ms == pytest.approx(gap_ms, rel=0.1)
        assert level.tok_s == pytest.approx(4 * 1000 / level.tpot_ms, rel=0.3)
        assert level.input_tokens == 32
        assert level.cached_share == 0
        assert level.decoding == pytest.approx(4, rel=0.25)
        assert level.in_flight == pytest.approx(4, rel=0.05)
        assert level.start_s is not None
        assert level.start_s >= before
        assert result.stretches
        assert {stretch.running for stretch in result.stretches} <= {1, 2, 3, 4}
        assert told[0].in_flight == 4
        assert told[0].tokens > 0
        prompts = [tuple(request.body["input_ids"]) for request in server.requests]
        assert len(set(prompts)) == len(prompts)
        lengths = [request.body["max_new_tokens"] for request in server.requests]
        assert sorted(lengths[:4]) == [50, 60, 70, 80]
        assert set(lengths[4:]) == {40}

    asyncio.run(drive())


def test_an_open_loop_sends_at_its_rate_and_waits_for_nobody() -> None:
    plan = LevelPlan(request_rate_s=40.0, input_tokens=16, output_tokens=20, seconds=2.0, seed=1)

    async def drive() -> LevelResult:
        async with serving(streaming(ttft_s=0.3, gap_s=0.005)) as (server, address):
            result = await run_level(address, NativeDialect(), plan)
            assert len(server.requests) == pytest.approx(
                80, abs=36
            )  # four standard deviations of a Poisson count
            assert server.connections < len(server.requests), "idle connections are used again"
        return result

    level = uvloop.run(drive()).level
    assert level.request_rate_s == 40.0
    assert level.concurrency is None
    assert level.failed == 0
    assert level.in_flight is not None
    assert level.in_flight > 8, "some 40 a second that stay 0.4 s each"
    assert level.client_queue_ms is not None
    assert level.client_queue_ms < 20


@pytest.mark.parametrize("processes", [2, 3])
def test_several_processes_see_what_one_sees(processes: int) -> None:
    plan = LevelPlan(concurrency=6, input_tokens=16, output_tokens=30, together_tokens=30, seconds=1.0)
    told: list[Progress] = []

    async def drive() -> LevelResult:
        async with serving(streaming(ttft_s=0.02, gap_s=0.005)) as (server, address):
            result = await run_level(
                address, NativeDialect(), plan, processes=processes, on_progress=told.append
            )
            await asyncio.sleep(0.1)
            assert not server.open
            assert server.connections == 6
            lengths = [request.body["max_new_tokens"] for request in server.requests]
            assert sorted(lengths[:6]) == [35, 40, 45, 50, 55, 60]
            done = [request for request in server.requests if request.done]
            assert result.level.requests == pytest.approx(len(done), abs=6)
        return result

    result = asyncio.run(drive())
    assert result.failures.first is None
    assert result.health.processes == processes
    assert result.level.in_flight == pytest.approx(6, rel=0.1)
    assert result.stretches
    assert max(stretch.running for stretch in result.stretches) == 6
    assert max(progress.in_flight for progress in told) == 6


class _Dies(NativeDialect):
    def body(self, ask: Ask) -> bytes:
        os._exit(len(ask.prompt_ids))


@pytest.mark.parametrize(
    "dialect", [NativeGenerate(), Completions("m", takes_ids=True, running_usage=True, extensions=True)]
)
def test_an_engines_dialect_reaches_another_process(dialect: Dialect) -> None:
    ask = Ask(prompt_ids=[17, 18], output_tokens=3)
    assert pickle.loads(pickle.dumps(dialect)).body(ask) == dialect.body(ask)  # noqa: S301 - our own


def test_a_process_that_dies_is_an_error_and_no_hang() -> None:
    plan = LevelPlan(concurrency=2, input_tokens=16, output_tokens=30, seconds=20.0)

    async def drive() -> None:
        async with serving(streaming()) as (_, address):
            await run_level(address, _Dies(), plan, processes=2)

    start = time.monotonic()
    with pytest.raises(SteplineError, match="died"):
        asyncio.run(drive())
    assert time.monotonic() - start < 15


@pytest.mark.parametrize(
    "wrong",
    [
        {"concurrency": None},
        {"request_rate_s": 1.0},
        {"concurrency": 0},
        {"seconds": 0.0},
        {"output_tokens": 0},
    ],
)
def test_a_plan_without_a_load_is_refused(wrong: dict[str, float | None]) -> None:
    plan = msgspec.structs.replace(
        LevelPlan(concurrency=1, input_tokens=1, output_tokens=1, seconds=1.0), **wrong
    )
    with pytest.raises(UsageError):
        asyncio.run(run_level(Address(host="127.0.0.1", port=1), NativeDialect(), plan))


def test_a_header_with_a_line_end_is_refused() -> None:
    address = Address(host="127.0.0.1", port=1, headers=(("X", "a\r\nEvil: b"),))
    plan = LevelPlan(concurrency=1, input_tokens=1, output_tokens=1, seconds=1.0)
    with pytest.raises(UsageError):
        asyncio.run(run_level(address, NativeDialect(), plan))
