"""`stepline lab serve`: one simulated engine on a port of this machine until it is stopped."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable
from typing import Any

import uvloop

from stepline.errors import UsageError
from stepline.lab.sim.counters import Counters
from stepline.lab.sim.http import Connection
from stepline.lab.sim.live import Live
from stepline.lab.sim.sglang.api import SglangApi
from stepline.lab.sim.sglang.log import SglangLog, local_epoch
from stepline.lab.sim.sglang.policy import SglangScheduler
from stepline.lab.sim.start import Started

HOST = "127.0.0.1"


async def serve(
    started: Started,
    port: int,
    write: Callable[[str], Any],
    *,
    speed: float = 1.0,
    ready: Callable[[int], Any] | None = None,
) -> None:
    """Serve until cancelled; port 0 takes a free one, which `ready` is told.

    Raises:
        UsageError: The port is taken.
    """
    scheduler = started.scheduler
    assert isinstance(scheduler, SglangScheduler)  # noqa: S101 - the only engine so far
    live = Live(scheduler, started.front, Counters(), speed=speed)
    epoch_s = local_epoch(time.time())
    log = SglangLog(write, scheduler.settings, started.shape, started.gpu.memory_bytes, epoch_s)
    live.on_forward.append(log.forward)
    apis: list[SglangApi] = []
    loop = asyncio.get_running_loop()
    try:
        server = await loop.create_server(lambda: Connection(apis[0]), HOST, port)
    except OSError as e:
        raise UsageError(f"cannot serve on port {port}: {e.strerror}") from e
    bound = server.sockets[0].getsockname()[1]
    apis.append(SglangApi(live, scheduler, started.shape, log, (HOST, bound)))
    log.startup(live.now(), HOST, bound)
    if ready:
        ready(bound)
    async with server:
        await live.run()


def serve_until_stopped(
    started: Started, port: int, write: Callable[[str], Any], *, speed: float, ready: Callable[[int], Any]
) -> None:
    """Serve until SIGINT or SIGTERM."""

    async def main() -> None:
        task = asyncio.ensure_future(serve(started, port, write, speed=speed, ready=ready))
        for signum in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(signum, task.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await task

    uvloop.run(main())
