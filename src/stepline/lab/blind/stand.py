"""Starts drawn servers side by side and keeps them apart: each on a port of its own, one loaded at a time."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from stepline.lab.blind.change import Server
from stepline.lab.blind.draw import Plan
from stepline.lab.blind.machine import NEIGHBOURS
from stepline.lab.real.beside import neighbour, traffic
from stepline.lab.real.engine import Engine, write_model
from stepline.lab.real.matrix import Case, Load, Traffic

BETWEEN_STARTS_S = 4.0
"""An engine logs free GPU memory before and after it loads; a neighbour loading meanwhile falsifies both."""


class Stand:
    """Engines of one campaign, on this machine; leaves none running."""

    def __init__(self, plan: Plan, work: Path, *, port: int, ready_s: float) -> None:
        """Write the models that the plan may start into `work`."""
        self._plan, self._work, self._port, self._ready_s = plan, work, port, ready_s
        self._started = 0
        self._running: dict[str, Engine] = {}
        for name, config in plan.models.items():
            write_model(work / "models" / name, config)

    def start(self, servers: Mapping[str, Server]) -> dict[str, str]:
        """Start these by name, wait until each takes requests, and return those that do not with the reason."""
        for index, (name, server) in enumerate(servers.items()):
            time.sleep(BETWEEN_STARTS_S if index else 0)
            port = self._port + 10 * self._started
            self._started += 1
            self._running[name] = Engine(self._plan.engine, _case(name, server), port, self._work)
        failed: dict[str, str] = {}
        for name in servers:
            self._running[name].wait_ready(self._ready_s)
            if why := self._running[name].failed:
                failed[name] = why
                self.stop([name])
        return failed

    @property
    def urls(self) -> list[str]:
        """Of all servers that run: they share the GPU, so none may still answer while another is measured."""
        return [engine.url for engine in self._running.values()]

    def url(self, name: str) -> str:
        """Where a started server answers."""
        return self._running[name].url

    def log(self, name: str) -> Path:
        """Its log."""
        return self._work / f"{name}.log"

    @contextlib.contextmanager
    def surroundings(self, name: str, server: Server) -> Iterator[None]:
        """What else goes on while a server is loaded: other requests, another program."""
        with contextlib.ExitStack() as stack:
            if server.beside is not None:
                words = int(self._plan.models[server.model]["vocab_size"])
                other = Traffic(
                    every_s=server.beside.every_s,
                    input_tokens=server.beside.input_tokens,
                    output_tokens=server.beside.output_tokens,
                    sampling=server.beside.sampling,
                )
                stack.enter_context(traffic(self.url(name), f"models/{server.model}", words, other))
            if server.neighbour is not None:
                stack.enter_context(neighbour(NEIGHBOURS[server.neighbour]))
            yield

    def stop(self, names: Sequence[str] | None = None) -> None:
        """Stop these servers, all without names."""
        for name in list(self._running) if names is None else names:
            if name in self._running:
                self._running.pop(name).stop(0.0)


def _case(name: str, server: Server) -> Case:
    return Case(
        name=name,
        model=server.model,
        fault="",
        expected="",
        load=Load(),
        flags=server.flags,
        environment=server.environment,
        cores=server.cores,
    )
