"""One level driven by several processes, where one core cannot read all its streams."""

import asyncio
import multiprocessing
import signal
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection as Pipe

import msgspec
import uvloop

from stepline.errors import SteplineError
from stepline.sources.load.answer import Counters
from stepline.sources.load.dialect import Dialect
from stepline.sources.load.level import Address, LevelPlan
from stepline.sources.load.loops import Driven, Loop, Share

TELL_S = 0.25
"""Between the counts that a worker sends: finer than the caller's own progress."""
READY_S = 60.0
"""For a worker to start and connect, on a machine so busy that imports take long."""
LEAD_S = 0.1
"""Between the word to start and the start: the last worker must have heard it by then."""


class Ready(msgspec.Struct, frozen=True, tag=True):
    """A worker is connected and waits for the time to start."""


Message = Ready | Counters | Driven
_MESSAGE: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)
_ENCODE = msgspec.msgpack.Encoder().encode


async def drive_by_workers(
    address: Address, dialect: Dialect, plan: LevelPlan, processes: int, counters: Sequence[Counters]
) -> list[Driven]:
    """Drive a level split over fresh processes.

    The monotonic clock is one for all processes of a machine, so they start together and their records merge
    as they are.

    Args:
        address: where the server is.
        dialect: must be picklable, as it is handed to every process.
        plan: of the whole level.
        processes: how many.
        counters: one a process, kept up to date.

    Raises:
        SteplineError: a process died.
    """
    context = multiprocessing.get_context("spawn")
    pipes: list[Pipe] = []
    workers = []
    readers = ThreadPoolExecutor(processes, "load-worker")
    try:
        for index in range(processes):
            ours, theirs = context.Pipe()
            share = Share(plan=plan, index=index, of=processes)
            worker = context.Process(target=_work, args=(theirs, address, dialect, share), daemon=True)
            pipes.append(ours)
            worker.start()
            workers.append(worker)
            theirs.close()  # so that a worker's death ends our reading
        async with asyncio.timeout(READY_S):
            await asyncio.gather(*(_hear(readers, pipe) for pipe in pipes))
        start_s = time.perf_counter() + LEAD_S
        for pipe in pipes:
            pipe.send_bytes(_ENCODE(start_s))
        return await asyncio.gather(
            *(_follow(readers, pipe, count) for pipe, count in zip(pipes, counters, strict=True))
        )
    except (EOFError, OSError) as error:
        raise SteplineError("a process of the load client died; try fewer processes") from error
    finally:
        for worker in workers:
            worker.terminate()
        readers.shutdown()
        for pipe in pipes:
            pipe.close()
        for worker in workers:
            worker.join()


async def _hear(readers: ThreadPoolExecutor, pipe: Pipe) -> Message:
    return _MESSAGE.decode(await asyncio.get_running_loop().run_in_executor(readers, pipe.recv_bytes))


async def _follow(readers: ThreadPoolExecutor, pipe: Pipe, counters: Counters) -> Driven:
    while True:
        message = await _hear(readers, pipe)
        if isinstance(message, Driven):
            return message
        if isinstance(message, Counters):
            for name in Counters.__struct_fields__:
                setattr(counters, name, getattr(message, name))


def _work(pipe: Pipe, address: Address, dialect: Dialect, share: Share) -> None:
    """The whole life of a worker process. Ctrl-C reaches all of a terminal's processes: the parent acts on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    uvloop.run(_work_in_loop(pipe, address, dialect, share))


async def _work_in_loop(pipe: Pipe, address: Address, dialect: Dialect, share: Share) -> None:
    counters = Counters()
    loop = Loop(address, dialect, share, counters)
    await loop.connect()
    pipe.send_bytes(_ENCODE(Ready()))
    start_s = msgspec.msgpack.decode(await asyncio.to_thread(pipe.recv_bytes), type=float)
    telling = asyncio.create_task(_tell(pipe, counters))
    driven = await loop.run(start_s)
    telling.cancel()
    pipe.send_bytes(_ENCODE(driven))


async def _tell(pipe: Pipe, counters: Counters) -> None:
    while True:
        await asyncio.sleep(TELL_S)
        pipe.send_bytes(_ENCODE(counters))
