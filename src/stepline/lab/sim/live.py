"""A simulated engine in real time: the clock drives the scheduler, surfaces listen."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from stepline.lab.sim.counters import Counters
from stepline.lab.sim.forward import Forward
from stepline.lab.sim.frontend import FrontEnd
from stepline.lab.sim.prompt import Request
from stepline.lab.sim.scheduler import Scheduler

OnTokens = Callable[[Request, int, int, bool], None]
"""request, new tokens, tokens so far, whether these were the last."""


class Live:
    """Runs `scheduler` at `speed` times real time until it is cancelled.

    The engine's clock starts at 0 with the first call of `run`. A forward ends exactly when the scheduler says,
    whatever this process was late by, so log and metrics are the simulation's and not this machine's.
    """

    def __init__(
        self, scheduler: Scheduler, front: FrontEnd, counters: Counters, *, speed: float = 1.0
    ) -> None:
        self.scheduler, self.front, self.counters = scheduler, front, counters
        self.on_forward: list[Callable[[Forward], None]] = []
        self._speed, self._wake = speed, asyncio.Event()
        self._start = time.monotonic()
        self._out: deque[tuple[float, list[tuple[Request, int, int, bool]]]] = deque()
        self._arriving: deque[tuple[float, Request]] = deque()

    def now(self) -> float:
        """Seconds of the engine's clock."""
        return (time.monotonic() - self._start) * self._speed

    def submit(self, request: Request) -> None:
        """Take a request; its owner must be callable as `OnTokens`."""
        self.counters.received += 1
        self._arriving.append((request.arrival_s + self.front.in_s, request))
        self._wake.set()

    def abort(self, request: Request) -> None:
        """Forget a request whose client is gone."""
        self._arriving = deque(pair for pair in self._arriving if pair[1] is not request)
        self.scheduler.abort(request)
        self.counters.dropped(request)
        request.owner = None

    async def run(self) -> None:
        """Serve until cancelled."""
        now = self.now()
        while True:
            self._admit(now)
            done = self.scheduler.step(now) if self.scheduler.busy else None
            if done is None:
                await self._idle()
                now = max(now, self.now())
                continue
            await self._until(done.end_s)
            now = done.end_s
            self._settle(done)

    def _admit(self, now: float) -> None:
        while self._arriving and self._arriving[0][0] <= now:
            self.scheduler.submit(self._arriving.popleft()[1])

    def _settle(self, done: Forward) -> None:
        self.counters.forward(done)
        for listen in self.on_forward:
            listen(done)
        if done.made:
            at_s = self.front.leaves(done.end_s, sum(tokens for _, tokens in done.made))
            gone = set(map(id, done.finished))
            self._out.append((at_s, [(r, n, r.made, id(r) in gone) for r, n in done.made]))
        self._hand_out()

    def _hand_out(self) -> None:
        """Give clients what the front end is done with."""
        now = self.now()
        while self._out and self._out[0][0] <= now:
            at_s, batch = self._out.popleft()
            for request, tokens, made, last in batch:
                if callable(request.owner):
                    self.counters.delivered(request, tokens, at_s)
                    if last:
                        self.counters.ended(request, at_s)
                    request.owner(request, tokens, made, last)

    async def _until(self, end_s: float) -> None:
        """Wait for the engine's clock, handing out meanwhile."""
        while True:
            self._hand_out()
            target = min(end_s, self._out[0][0]) if self._out else end_s
            left = (target - self.now()) / self._speed
            if left <= 0 and target >= end_s:
                await asyncio.sleep(0)  # sockets must be served even when the simulation lags behind
                return
            await asyncio.sleep(max(0.0, left))

    async def _idle(self) -> None:
        """Wait for the next arrival or the next hand-out."""
        self._hand_out()
        self._wake.clear()
        nexts = [pairs[0][0] for pairs in (self._arriving, self._out) if pairs]
        left = (min(nexts) - self.now()) / self._speed if nexts else None
        if left is not None and left <= 0:
            await asyncio.sleep(0)
            return
        try:
            await asyncio.wait_for(self._wake.wait(), left)
        except TimeoutError:
            return
