"""Reads gather only where tokens come so fast that each would wake the process, and only for a moment."""

import asyncio
import time

from stepline.sources.load.answer import Counters
from stepline.sources.load.pace import GATHER_S, MANY_TOKENS_S, SAMPLE_S, Pace


async def follow(rate_s: float, seconds: float, counters: Counters) -> None:
    """Tokens at a rate, as reads bring them."""
    start_s, before = time.perf_counter(), counters.tokens
    while (passed_s := time.perf_counter() - start_s) < seconds:
        counters.tokens = before + round(rate_s * passed_s)
        await asyncio.sleep(0.001)


def test_it_gathers_while_tokens_are_many_and_no_longer() -> None:
    async def run() -> list[bool]:
        counters = Counters()
        pace = Pace(counters)
        watching = asyncio.create_task(pace.watch())
        due = []
        for rate_s in (0.1 * MANY_TOKENS_S, 10 * MANY_TOKENS_S, 0.1 * MANY_TOKENS_S, 10 * MANY_TOKENS_S):
            await follow(rate_s, 5 * SAMPLE_S, counters)
            due.append(pace.due)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        return [*due, pace.due]

    assert asyncio.run(run()) == [False, True, False, True, False]


def test_a_read_holds_the_loop_up_once_until_the_next_one() -> None:
    async def run() -> tuple[float, bool, bool]:
        pace = Pace(Counters())
        pace._many = pace.due = True
        pace.rest()
        during, start_s = pace.due, time.perf_counter()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return time.perf_counter() - start_s, during, pace.due

    held_s, during, after = asyncio.run(run())
    assert held_s >= GATHER_S
    assert (during, after) == (False, True)
