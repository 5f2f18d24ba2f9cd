"""The engine's profiler: records forwards between a start and a stop, then writes one file a rank."""

from collections.abc import Callable
from pathlib import Path

from stepline.facts.hardware import Gpu
from stepline.lab.sim.engine import Engine
from stepline.lab.sim.forward import Forward
from stepline.lab.sim.instruments.trace import Trace
from stepline.lab.sim.settings import Settings
from stepline.lab.sim.shape import Shape

STALL_S = 1.5
"""What writing a short trace stops a server for; 2 s and more were seen (the shortest captures of an H200)."""


class Profiler:
    """At most one recording at a time."""

    def __init__(self, engine: Engine, shape: Shape, gpu: Gpu, *, epoch_s: float) -> None:
        self._engine, self._shape, self._gpu, self._epoch = engine, shape, gpu, epoch_s
        self._settings: Settings = engine.scheduler.settings
        self._traces: list[Trace] = []
        self._left: int | None = None
        self._names: Callable[[int], str] = str
        self.folder = Path()
        """Where the last recording went or goes."""
        self.on_done: Callable[[], None] | None = None
        """Called when a recording has been written."""
        engine.on_forward.append(self._forward)

    @property
    def active(self) -> bool:
        """It records."""
        return bool(self._traces)

    def start(self, folder: Path, names: Callable[[int], str], steps: int | None) -> None:
        """Record `steps` forwards, or until `stop`; rank r goes to `folder / names(r)`.

        Raises:
            OSError: the folder cannot be made.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._names, self._left = folder, names, steps
        self._traces = [
            Trace(
                self._shape,
                self._settings,
                self._gpu,
                self._engine.scheduler.world.disturbance,
                epoch_s=self._epoch,
                rank=rank,
            )
            for rank in range(self._settings.tp)
        ]

    def stop(self) -> None:
        """Write what was recorded; the engine stands still meanwhile."""
        traces, self._traces = self._traces, []
        for rank, trace in enumerate(traces):
            name = self._names(rank)
            partial = self.folder / f"{name}.partial"
            partial.write_bytes(trace.compressed(name))
            partial.rename(self.folder / name)
        self._engine.stall_s += STALL_S
        if self.on_done:
            self.on_done()

    def _forward(self, done: Forward) -> None:
        for trace in self._traces:
            trace.forward(done)
        if self._traces and self._left is not None and self._traces[0].steps >= self._left:
            self.stop()
