"""A simulated engine without a clock: requests come in, forwards happen, tokens go out, at times it is told."""

import itertools
from bisect import insort
from collections import deque
from collections.abc import Callable
from typing import Protocol

from stepline.lab.sim.forward import Forward
from stepline.lab.sim.frontend import FrontEnd
from stepline.lab.sim.instruments.counters import Counters
from stepline.lab.sim.prompt import Request
from stepline.lab.sim.scheduler import Scheduler


class Clocked(Protocol):
    """An engine with a clock, real or virtual."""

    engine: "Engine"

    def now(self) -> float:
        """Seconds of the engine's clock."""

    def submit(self, request: Request) -> None:
        """Take a request."""


class Engine:
    """Scheduler and front end together; `Live` and `Virtual` supply the clock."""

    def __init__(self, scheduler: Scheduler, front: FrontEnd) -> None:
        self.scheduler, self.front, self.counters = scheduler, front, Counters()
        self.on_forward: list[Callable[[Forward], None]] = []
        self.on_tick: list[Callable[[float], None]] = []
        """Told the time after every forward and pause."""
        self.stall_s = 0.0
        """How long it will stand still before the next forward."""
        self._out: deque[tuple[float, list[tuple[Request, int, int, bool]]]] = deque()
        self._arriving: list[tuple[float, int, Request]] = []
        self._order = itertools.count()

    def submit(self, request: Request) -> None:
        """Take a request that left its client at `arrival_s`; its owner is called for its tokens."""
        self.counters.received += 1
        insort(self._arriving, (request.arrival_s + self.front.in_s, next(self._order), request))

    def abort(self, request: Request) -> None:
        """Forget a request whose client is gone."""
        self._arriving = [entry for entry in self._arriving if entry[2] is not request]
        self.scheduler.abort(request)
        self.counters.dropped(request)
        request.owner = None

    def begin(self, now: float) -> Forward | None:
        """Take what has arrived and start the next forward; None when there is nothing to do."""
        while self._arriving and self._arriving[0][0] <= now:
            self.scheduler.submit(self._arriving.pop(0)[2])
        if not self.scheduler.busy:
            return None
        stalled_s, self.stall_s = self.stall_s, 0.0
        return self.scheduler.step(now + stalled_s)

    def settle(self, done: Forward) -> None:
        """Count and log a forward that has ended, and hand its tokens to the front end."""
        self.counters.forward(done)
        for listen in self.on_forward:
            listen(done)
        if done.made:
            at_s = self.front.leaves(done.end_s, sum(tokens for _, tokens in done.made))
            last = set(map(id, done.finished))
            self._out.append((at_s, [(r, n, r.made, id(r) in last) for r, n in done.made]))

    def hand_out(self, now: float) -> None:
        """Give clients what the front end is done with by `now`."""
        while self._out and self._out[0][0] <= now:
            at_s, batch = self._out.popleft()
            for request, tokens, made, last in batch:
                if request.owner is None:
                    continue
                self.counters.delivered(request, tokens, at_s)
                if last:
                    self.counters.ended(request, at_s)
                request.owner(request, tokens, at_s, made, last)

    def next_out_s(self) -> float | None:
        """When the next tokens leave."""
        return self._out[0][0] if self._out else None

    def next_s(self) -> float | None:
        """When the next request arrives or the next tokens leave, whichever is first."""
        times = [queue[0][0] for queue in (self._arriving, self._out) if queue]
        return min(times) if times else None
