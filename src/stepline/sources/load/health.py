"""What the client can say about itself: how busy it was and how late its loop ran."""

import asyncio
import time
from array import array

import msgspec
import numpy as np

from stepline.evidence.load import ClientHealth

SAMPLE_S = 0.02
"""Between samples of the loop's lateness: a level of two seconds has a hundred, at a cost of about 0.1 % of a core."""


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """One process of the client over a level."""

    cpu_s: float
    wall_s: float
    tokens: int
    lags: bytes
    """How late each sample's timer fired, in seconds: doubles."""


class EffortMeter:
    """Measures this process from its making to `stop`.

    An event that arrives while the loop is busy waits as long as a timer that falls due then, so the timers'
    lateness bounds the error of the times the client reports. Whole milliseconds are uvloop's own grain.
    """

    def __init__(self) -> None:
        self._cpu_s = time.process_time()
        self._wall_s = time.perf_counter()
        self._lags = array("d")
        self._task = asyncio.create_task(self._sample())

    async def _sample(self) -> None:
        while True:
            due = time.perf_counter() + SAMPLE_S
            await asyncio.sleep(SAMPLE_S)
            self._lags.append(max(0.0, time.perf_counter() - due))

    def stop(self, tokens: int) -> Effort:
        """What it took to read `tokens`."""
        self._task.cancel()
        return Effort(
            cpu_s=time.process_time() - self._cpu_s,
            wall_s=time.perf_counter() - self._wall_s,
            tokens=tokens,
            lags=self._lags.tobytes(),
        )


def health(efforts: list[Effort]) -> ClientHealth:
    """The client's state: the busiest process, the laggiest loop, and all CPU time over all tokens."""
    tokens = sum(effort.tokens for effort in efforts)
    lags = [1000 * np.frombuffer(effort.lags) for effort in efforts if effort.lags]
    return ClientHealth(
        cpu_share=max(effort.cpu_s / effort.wall_s for effort in efforts),
        us_per_token=1e6 * sum(effort.cpu_s for effort in efforts) / tokens if tokens else None,
        lag_p50_ms=max((float(np.percentile(lag, 50)) for lag in lags), default=0.0),
        lag_p99_ms=max((float(np.percentile(lag, 99)) for lag in lags), default=0.0),
        late_share=max(float(np.sum(np.frombuffer(effort.lags))) / effort.wall_s for effort in efforts),
        processes=len(efforts),
    )
