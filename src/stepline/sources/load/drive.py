"""Runs one level of load against a server and says what came of it."""

import asyncio
import resource
import time
from collections.abc import Callable, Sequence

from stepline.errors import UsageError
from stepline.evidence.origin import Origin
from stepline.sources.load.answer import Counters
from stepline.sources.load.dialect import Dialect
from stepline.sources.load.failures import failures
from stepline.sources.load.health import health
from stepline.sources.load.level import Address, LevelPlan, LevelResult, Progress
from stepline.sources.load.loops import Driven, Loop, Share
from stepline.sources.load.request import head
from stepline.sources.load.stream_counts import Seen
from stepline.sources.load.stretches import stretches
from stepline.sources.load.summary import summarise
from stepline.sources.load.workers import drive_by_workers

SPARE_FILES = 128
"""What else the process has open: the recording's files, libraries, pipes to workers."""
PROGRESS_S = 0.5
"""Between calls of `on_progress`."""


async def run_level(
    address: Address,
    dialect: Dialect,
    plan: LevelPlan,
    *,
    file: str = "client.jsonl",
    processes: int = 1,
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
        processes: how many share the streams; more than one need a picklable dialect and half a second to start.
        on_progress: told the state of things twice a second.

    Raises:
        UsageError: the plan names no load, a header cannot be sent, or the system allows too few sockets.
        SteplineError: one of several processes died.
    """
    _check(plan, processes)
    head(address, dialect)
    allow_sockets(plan.concurrency or 0)
    counters = [Counters() for _ in range(processes)]
    telling = asyncio.create_task(_tell(on_progress, counters))
    try:
        if processes > 1:
            driven = await drive_by_workers(address, dialect, plan, processes, counters)
        else:
            loop = Loop(address, dialect, Share(plan=plan), counters[0])
            await loop.connect()
            driven = [await loop.run(time.perf_counter())]
    finally:
        telling.cancel()
    return _result(plan, dialect, driven, file)


def allow_sockets(streams: int) -> None:
    """Raise this process's own limit on open files where it is too low; workers inherit it.

    Raises:
        UsageError: the system allows no more.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = streams + SPARE_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise UsageError(f"{streams} streams need as many open files, and `ulimit -Hn` allows {hard} in all")
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _check(plan: LevelPlan, processes: int) -> None:
    loads = [load for load in (plan.concurrency, plan.request_rate_s) if load is not None]
    if len(loads) != 1:
        raise UsageError("a level needs either a concurrency or a request rate")
    if loads[0] <= 0 or plan.seconds <= 0:
        raise UsageError("a level needs a positive load and time")
    if plan.input_tokens < 1 or plan.output_tokens < 1 or plan.vocabulary < 1:
        raise UsageError("a level needs prompts and answers of a token at least")
    if processes < 1 or processes > (plan.concurrency or processes):
        raise UsageError("a level needs a process at least, and a stream for each")


async def _tell(on_progress: Callable[[Progress], None], counters: Sequence[Counters]) -> None:
    start_s = time.perf_counter()
    while True:
        await asyncio.sleep(PROGRESS_S)
        on_progress(
            Progress(
                elapsed_s=time.perf_counter() - start_s,
                in_flight=sum(each.in_flight for each in counters),
                decoding=sum(each.decoding for each in counters),
                requests=sum(each.requests for each in counters),
                failed=sum(each.failed for each in counters),
                tokens=sum(each.tokens for each in counters),
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
