"""Times operations on the GPU: a CUDA graph of many of them, between two events, several times over."""

import contextlib
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from stepline.evidence.calibration import Conditions
from stepline.lab.calibrate.conditions import Driver
from stepline.lab.calibrate.plan import Body, repeats

WARM_S = 0.5
"""An idle GPU takes tens of milliseconds to raise its clocks, and longer to settle."""
SAMPLE_MS = 4.0
"""Long beside the few microseconds between two graphs, short beside a budget of seconds."""
SAMPLES = 11


class Timed(NamedTuple):
    """Milliseconds of one operation in each sample, and the GPU meanwhile."""

    samples_ms: list[float]
    conditions: Conditions

    @property
    def summary(self) -> dict[str, Any]:
        """The fields of a `Measured` that say when, how long and under what."""
        return {
            "ms": statistics.median(self.samples_ms),
            "low_ms": min(self.samples_ms),
            "high_ms": max(self.samples_ms),
            "samples": len(self.samples_ms),
            "conditions": self.conditions,
        }


class GpuClock:
    """Captures, warms and times on the current stream, which must not be the default one."""

    def __init__(self, torch: Any, driver: Driver) -> None:
        self._torch, self._driver = torch, driver

    def warm(self, body: Body) -> None:
        """Keep the GPU busy until its clocks are up."""
        end = time.monotonic() + WARM_S
        while time.monotonic() < end:
            body()
            self._torch.cuda.current_stream().synchronize()

    def graph(self, bodies: list[Body]) -> Timed:
        """Time `bodies` on the GPU, launched one after the other from a CUDA graph."""
        graph = self.capture(bodies)
        graph.replay()
        first, last = self._launch(graph.replay, 2)
        last.synchronize()
        rough_ms = float(first.elapsed_time(last)) / 2
        return self._samples(graph, len(bodies), repeats(rough_ms, wanted_ms=SAMPLE_MS))

    def fixed(self, bodies: list[Body], *, replays: int) -> Timed:
        """As `graph`, with the replays of a sample given: for ranks that must all launch the same."""
        return self._samples(self.capture(bodies), len(bodies), replays)

    def _samples(self, graph: Any, bodies: int, replays: int) -> Timed:
        """Launch all samples in one go: the GPU never waits for the host, and is busy while its clocks are read."""
        self._launch(graph.replay, replays)
        pairs = [self._launch(graph.replay, replays) for _ in range(SAMPLES)]
        conditions = self._driver.conditions()
        self._torch.cuda.current_stream().synchronize()
        whole_ms = [float(first.elapsed_time(last)) / replays for first, last in pairs]
        return Timed([ms / bodies for ms in whole_ms], conditions)

    def host(self, body: Body, count: int) -> Timed:
        """Time what the host takes to launch `body`, `count` times in a row."""
        samples = []
        for _ in range(SAMPLES):
            self._torch.cuda.current_stream().synchronize()
            start = time.perf_counter()
            for _ in range(count):
                body()
            samples.append(1e3 * (time.perf_counter() - start) / count)
        conditions = self._driver.conditions()
        self._torch.cuda.current_stream().synchronize()
        return Timed(samples, conditions)

    def capture(self, bodies: list[Body]) -> Any:
        """A CUDA graph of `bodies`."""
        torch = self._torch
        for body in bodies[:3]:  # what libraries set up on first use must not be captured
            body()
        torch.cuda.current_stream().synchronize()
        graph = torch.cuda.CUDAGraph()
        # The watchdog thread of a process group asks for its events at any time: that is no error of this thread.
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            for body in bodies:
                body()
        except BaseException:
            with contextlib.suppress(Exception):  # the capture is broken already, which is what it would say
                graph.capture_end()
            raise
        graph.capture_end()
        return graph

    def _launch(self, body: Callable[[], Any], count: int) -> tuple[Any, Any]:
        first, last = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(count):
            body()
        last.record()
        return first, last
