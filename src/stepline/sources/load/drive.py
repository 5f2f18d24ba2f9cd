"""Runs one level of load against a server and says what came of it."""

import asyncio
import time
from collections.abc import Callable

from stepline.errors import UsageError
from stepline.evidence.origin import Origin
from stepline.sources.load.answer import Counters
from stepline.sources.load.dialect import Dialect
from stepline.sources.load.failures import failures
from stepline.sources.load.health import health
from stepline.sources.load.level import Address, LevelPlan, LevelResult, Progress
from stepline.sources.load.loops import Driven, Loop, Share
from stepline.sources.load.stretches import stretches
from stepline.sources.load.summary import summarise
from stepline.sources.load.timeline import Seen

PROGRESS_S = 0.5


async def run_level(
    address: Address,
    dialect: Dialect,
    plan: LevelPlan,
    *,
    file: str = "client.jsonl",
    on_progress: Callable[[Progress], None] = lambda _progress: None,
) -> LevelResult:
    """Drive one level for `plan.seconds` and a handshake's time before them.

    Whatever the server does is counted in `failures`, never raised; a level in which every request fails ends
    early. Best run under uvloop.

    Args:
        address: where the server is.
        dialect: how it is asked.
        plan: what to offer.
        file: named in the origins of the records.
        on_progress: told the state of things twice a second.

    Raises:
        UsageError: the plan names no load, or a header cannot be sent.
    """
    _check(plan)
    counters = Counters()
    loop = Loop(address, dialect, Share(plan=plan), counters)
    await loop.connect()
    start_s = time.perf_counter()
    telling = asyncio.create_task(_tell(on_progress, counters, start_s))
    try:
        driven = await loop.run(start_s)
    finally:
        telling.cancel()
    return _result(plan, dialect, [driven], file)


def _check(plan: LevelPlan) -> None:
    if (plan.concurrency is None) == (plan.request_rate_s is None):
        raise UsageError("a level needs either a concurrency or a request rate")
    if (plan.concurrency or 1) < 1 or (plan.request_rate_s or 1) <= 0 or plan.seconds <= 0:
        raise UsageError("a level needs a positive load and time")
    if plan.input_tokens < 1 or plan.output_tokens < 1 or plan.vocabulary < 1:
        raise UsageError("a level needs prompts and answers of a token at least")


async def _tell(on_progress: Callable[[Progress], None], counters: Counters, start_s: float) -> None:
    while True:
        await asyncio.sleep(PROGRESS_S)
        on_progress(
            Progress(
                elapsed_s=time.perf_counter() - start_s,
                in_flight=counters.in_flight,
                decoding=counters.decoding,
                requests=counters.requests,
                failed=counters.failed,
                tokens=counters.tokens,
            )
        )


def _result(plan: LevelPlan, dialect: Dialect, parts: list[Driven], file: str) -> LevelResult:
    start_s, end_s = min(part.start_s for part in parts), max(part.end_s for part in parts)
    all_seen = [Seen(record) for part in parts for record in part.records]
    unix_s = time.time() - time.perf_counter()
    return LevelResult(
        level=summarise(plan, all_seen, (start_s, end_s), unix_s, Origin(file), ids=dialect.takes_ids),
        stretches=stretches(all_seen, end_s, unix_s, file),
        failures=failures(seen.record for seen in all_seen),
        health=health([part.effort for part in parts]),
    )
