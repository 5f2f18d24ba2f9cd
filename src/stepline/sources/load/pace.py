"""Lets reads gather where every single token would wake the process: waking costs more than reading."""

import asyncio
import time

from stepline.sources.load.answer import Counters

GATHER_S = 0.0005
"""After a read, before the sockets are looked at again: times are late by a quarter of a millisecond in the mean, a
twentieth of a fast step, and gaps are not biased. The loop's own timers are no finer than a millisecond."""
MANY_TOKENS_S = 8000.0
"""Tokens a second from which it pays: four in that time."""
SAMPLE_S = 0.02


class Pace:
    """Of one process's loop."""

    __slots__ = ("_counters", "_loop", "_many", "due")

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._loop = asyncio.get_running_loop()
        self._many = False
        self.due = False
        """A read is to call `rest`."""

    async def watch(self) -> None:
        """Follow the rate until cancelled."""
        try:
            while True:
                before, start_s = self._counters.tokens, time.perf_counter()
                await asyncio.sleep(SAMPLE_S)
                rate_s = (self._counters.tokens - before) / (time.perf_counter() - start_s)
                self._many = rate_s >= MANY_TOKENS_S
                self.due = self._many
        finally:
            self._many = self.due = False

    def rest(self) -> None:
        """Let what comes next gather, once all that can be read now was read."""
        self.due = False
        self._loop.call_soon(self._hold)

    def _hold(self) -> None:
        """Holds the loop up on purpose."""
        time.sleep(GATHER_S)
        self.due = self._many
