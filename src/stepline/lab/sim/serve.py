"""`stepline lab serve`: one simulated engine on a port of this machine until it is stopped."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable
from typing import Any

import uvloop

from stepline.errors import UsageError
from stepline.lab.sim.engine import Engine
from stepline.lab.sim.http import Connection
from stepline.lab.sim.live import Live
from stepline.lab.sim.start import Started
from stepline.lab.sim.surfaces import Surface, surface

HOST = "127.0.0.1"


def local_epoch(now_s: float) -> float:
    """The Unix time whose UTC reading is the local time at `now_s`, as engines stamp their logs."""
    return now_s + (time.localtime(now_s).tm_gmtoff or 0)


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
    live = Live(Engine(started.scheduler, started.front), speed=speed)
    faces: list[Surface] = []
    try:
        server = await asyncio.get_running_loop().create_server(lambda: Connection(faces[0]), HOST, port)
    except OSError as e:
        raise UsageError(f"cannot serve on port {port}: {e.strerror}") from e
    bound = server.sockets[0].getsockname()[1]
    epoch_s = local_epoch(time.time())
    faces.append(surface(started, live, write, epoch_s=epoch_s, address=(HOST, bound)))
    faces[0].startup()
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
