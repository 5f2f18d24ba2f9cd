"""A torch profiler trace of simulated forwards, laid out as Kineto writes it, with the host's gaps and launches.

Three things can go wrong with it (`Disturbance.trace_fault`): `cut`, the file ends in the middle; `holes`, two of three
graph replays lack the kernels of their second half; `no kernels`, the GPU's activity was not recorded.
"""

import gzip
import itertools
import json
import random
from typing import Any

from stepline.facts.hardware import Gpu
from stepline.lab.sim.forward import Forward
from stepline.lab.sim.instruments.kernels import Forwarded, Kernel, after_layers, of_layers
from stepline.lab.sim.settings import Settings
from stepline.lab.sim.shape import Shape
from stepline.lab.sim.world import Disturbance

_HOST, _STREAM = 565, 13
_LAUNCH_US = 4.0
"""From a launch to the kernel's start on an idle GPU."""


class Trace:
    """Collects forwards of one rank; `rank` moves its kernels by a little, as ranks differ."""

    def __init__(
        self,
        shape: Shape,
        settings: Settings,
        gpu: Gpu,
        disturbance: Disturbance,
        *,
        epoch_s: float,
        rank: int = 0,
    ) -> None:
        self._shape, self._settings, self._gpu, self._disturbance = shape, settings, gpu, disturbance
        self._epoch, self._rank = epoch_s, rank
        self._random = random.Random(rank)  # noqa: S311 - a simulation
        self._events: list[dict[str, Any]] = []
        self._correlation = itertools.count(100)
        self.steps = 0

    def forward(self, done: Forward) -> None:
        """Lay out one forward: its GPU time lies at the end of its wall time, its launches before."""
        self.steps += 1
        start, wall = 1e6 * done.start_s, 1e6 * (done.end_s - done.start_s)
        total = done.cost.parts.total
        one = Forwarded(
            parts=done.cost.parts.of_rank(late=self._rank == self._settings.tp - 1),
            factor=1e3 * done.cost.gpu_s / total if total else 1.0,
            batch=done.batch,
            tokens=done.new_tokens,
            disturbance=self._disturbance,
        )
        self._span("user_annotation", self._name(done), start, 0.9 * wall)
        first = start + max(_LAUNCH_US, wall - 1e6 * done.cost.gpu_s)
        inside, after = list(of_layers(one, self._shape, self._settings)), list(after_layers(one))
        if done.graph and done.kind == "decode":
            correlation = next(self._correlation)
            self._runtime("cudaGraphLaunch", first - _LAUNCH_US, 30.0, correlation)
            if self._disturbance.trace_fault == "holes" and self.steps % 3:
                inside = inside[: len(inside) // 2]
            at = self._kernels(inside, first, correlation)
        else:
            # Launched one by one over the wall time: the GPU waits before each that the host is late with.
            spare = max(0.0, wall - 1e6 * done.cost.gpu_s) / max(1, len(inside))
            at = self._eagerly(inside, start, spare)
        self._eagerly(after, at, 0.0)

    def _eagerly(self, kernels: list[Kernel], at: float, spare: float) -> float:
        for kernel in kernels:
            correlation = next(self._correlation)
            self._runtime("cudaLaunchKernel", at + spare - _LAUNCH_US, 3.0, correlation)
            at = self._kernels([kernel], at + spare, correlation)
        return at

    def _kernels(self, kernels: list[Kernel], at: float, correlation: int) -> float:
        for kernel in kernels:
            us = kernel.us * (1 + 0.005 * self._random.gauss(0, 1))
            if us <= 0 or self._disturbance.trace_fault == "no kernels":
                continue
            self._span(
                "kernel",
                kernel.name,
                at,
                0.97 * us,  # the rest is the gap to the next one
                pid=0,
                tid=_STREAM,
                device=0,
                stream=_STREAM,
                correlation=correlation,
                grid=list(kernel.grid),
                block=[128, 1, 1],
                **{"registers per thread": 64, "shared memory": 0, "est. achieved occupancy %": 0},
            )
            at += us
        return at

    def _runtime(self, name: str, at: float, us: float, correlation: int) -> None:
        self._span("cuda_runtime", name, at, us, cbid=311, correlation=correlation)

    def _span(
        self, cat: str, name: str, at: float, us: float, *, pid: int = _HOST, tid: int = _HOST, **args: Any
    ) -> None:
        event = {
            "ph": "X",
            "cat": cat,
            "name": name,
            "pid": pid,
            "tid": tid,
            "ts": round(at, 3),
            "dur": round(us, 3),
        }
        self._events.append(event | {"args": args})

    def _name(self, done: Forward) -> str:
        if self._settings.engine == "vllm":
            return f"execute_context_{done.new_sequences}({done.new_tokens})_generation_{done.batch}({done.batch})"
        if done.kind == "prefill":
            return f"step[EXTEND bs={done.new_sequences} toks={done.new_tokens}]"
        return f"step[{'VERIFY' if done.drafted else 'DECODE'} bs={done.batch}]"

    def compressed(self, name: str) -> bytes:
        """The file's bytes, gzip; the same for the same steps."""
        info = {"backend": "nccl", "rank": self._rank, "world_size": self._settings.tp}
        document = {
            "schemaVersion": 1,
            "deviceProperties": [
                {
                    "id": 0,
                    "name": self._gpu.name,
                    "totalGlobalMem": int(self._gpu.memory_bytes),
                    "numSms": self._gpu.sms,
                    "warpSize": 32,
                    "maxThreadsPerMultiprocessor": 2048,
                }
            ],
            "record_shapes": 1,
            "distributedInfo": info,
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": int(1e9 * self._epoch),
            "traceEvents": self._events,
            "traceName": name,
        }
        text = json.dumps(document).encode()
        if self._disturbance.trace_fault == "cut":
            text = text[: 2 * len(text) // 3]
        return gzip.compress(text, compresslevel=1, mtime=0)
