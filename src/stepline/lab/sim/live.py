"""A simulated engine in real time."""

import asyncio
import time

from stepline.lab.sim.engine import Engine
from stepline.lab.sim.prompt import Request


class Live:
    """Runs an engine at `speed` times real time until it is cancelled; its clock starts at 0.

    A forward ends exactly when the scheduler says, whatever this process was late by, so log and metrics are the
    simulation's and not this machine's.
    """

    def __init__(self, engine: Engine, *, speed: float = 1.0) -> None:
        self.engine = engine
        self._speed, self._wake = speed, asyncio.Event()
        self._start = time.monotonic()

    def now(self) -> float:
        """Seconds of the engine's clock."""
        return (time.monotonic() - self._start) * self._speed

    def submit(self, request: Request) -> None:
        """Take a request."""
        self.engine.submit(request)
        self._wake.set()

    async def run(self) -> None:
        """Serve until cancelled."""
        engine, now = self.engine, self.now()
        while True:
            done = engine.begin(now)
            if done is None:
                await self._idle()
                now = max(now, self.now())
            else:
                await self._until(done.end_s)
                now = done.end_s
                engine.settle(done)
                engine.hand_out(self.now())
            for tick in engine.on_tick:
                tick(now)

    async def _until(self, end_s: float) -> None:
        """Wait for the engine's clock, handing out meanwhile."""
        while True:
            self.engine.hand_out(self.now())
            out_s = self.engine.next_out_s()
            target = end_s if out_s is None else min(end_s, out_s)
            left = (target - self.now()) / self._speed
            if left <= 0 and target >= end_s:
                await asyncio.sleep(0)  # sockets must be served even when the simulation lags behind
                return
            await asyncio.sleep(max(0.0, left))

    async def _idle(self) -> None:
        """Wait for the next arrival or hand-out, at most a second of the engine's clock."""
        self.engine.hand_out(self.now())
        self._wake.clear()
        next_s = self.engine.next_s()
        left = (
            (min(next_s, self.now() + 1) - self.now()) / self._speed
            if next_s is not None
            else 1 / self._speed
        )
        if left <= 0:
            await asyncio.sleep(0)
            return
        try:
            await asyncio.wait_for(self._wake.wait(), left)
        except TimeoutError:
            return
