"""Whole levels against servers that behave."""

import asyncio
import time
from itertools import pairwise
from statistics import mean

import pytest

from stepline.sources.load.drive import run_level
from stepline.sources.load.level import LevelPlan, Progress
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
        gap_ms = 1000 * mean(after - before for _, *times in wrote for before, after in pairwise(times))
        firsts_ms = [1000 * (times[1] - times[0]) for times in wrote[4:] if len(times) > 1]
        assert level.tpot_ms == pytest.approx(gap_ms, rel=0.05)
        assert level.ttft_ms == pytest.approx(mean(firsts_ms), abs=2)
        assert level.itl_ms == pytest.approx(gap_ms, rel=0.05)
        assert level.tok_s == pytest.approx(4 * 1000 / level.tpot_ms, rel=0.2)
        assert level.input_tokens == 32
        assert level.cached_share == 0
        assert level.decoding == pytest.approx(4, rel=0.15)
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
