"""One recording of one running server: a folder that is readable whenever the recording stops."""

import asyncio
import contextlib
import gzip
import shutil
import time
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from stepline.errors import UnreadableEvidence
from stepline.sources import openai_surface
from stepline.sources.address import is_local, shown
from stepline.sources.client_file import SERVER_FILE, LevelRecord, ServerRecord, append_level
from stepline.sources.engines.sglang import surface as sglang
from stepline.sources.engines.vllm import surface as vllm
from stepline.sources.http import Http, Unreachable
from stepline.sources.live.gpu import GpuSampler, gpu_names
from stepline.sources.live.log_copy import LogCopy
from stepline.sources.live.process import find_local
from stepline.sources.live.scraper import Scraper
from stepline.sources.load.dialect import Dialect
from stepline.sources.load.drive import run_level
from stepline.sources.load.level import Address, LevelPlan, LevelResult, Progress
from stepline.sources.redact import redact
from stepline.sources.surface import Found

T = TypeVar("T")
ENGINES = (sglang.find, vllm.find, openai_surface.find)
"""In the order they are asked: an engine's own routes before those that all of them share."""
_LOG_FILE = "server.log"
_CONFIG_FILE = "config.json"
_SETTLE_S = 1.0
"""Where no route counts requests: an engine notices a closed connection within some steps."""
_IDLE_WAIT_S = 10.0
"""Others may use the server too, so this ends."""
_TRACED_S = 2.0
"""Longest trace of an engine that does not count steps itself: every traced second is tens of MB."""
_TRACE_WAIT_S = 60.0
"""A trace without Python stacks was written within 5 s on the H200 captures; an eager one takes longest."""


class Session:
    """A recording into `folder`, between `__enter__` and `__exit__`.

    Everything is written as it comes, in the formats that recorded evidence has anyway, so that an
    interruption loses the level in progress and nothing else.
    """

    def __init__(self, address: Address, folder: Path, *, log: Path | None = None) -> None:
        """Find out what the server is.

        Raises:
            Unreachable: nobody answers.
            UnreadableEvidence: something answers that is no LLM server.
            OSError: the folder or the given log cannot be used.
        """
        self.http = Http(address)
        self.address, self.folder = address, folder
        folder.mkdir(parents=True, exist_ok=True)
        self.found = _find(self.http)
        self._dialect: Dialect | None = None
        local = find_local(address.port) if is_local(address) else None
        source = log or (local.log if local else None)
        self.log = source
        self._log_copy = None if source is None else LogCopy(source, folder / _LOG_FILE)
        self.record = ServerRecord(
            url=shown(address),
            engine=self.found.engine,
            engine_version=self.found.version,
            model=self.found.model,
            context_tokens=self.found.max_context_tokens,
            gpus=gpu_names() if local else (),
            lacks=self.found.lacks + (() if source else ("the log: give its file with --log",)),
            started_s=time.time(),
        )
        for name, body in self.found.files.items():
            (folder / name).write_text(redact(body.decode("utf-8", "replace")), "utf-8")
        self._keep_config(local.folder if local else None)
        self.write_record()
        self._threads = contextlib.ExitStack()

    def write_record(self, **changes: object) -> None:
        """Write `server.json` anew, with changed fields."""
        self.record = msgspec.structs.replace(self.record, **changes)
        (self.folder / SERVER_FILE).write_bytes(msgspec.json.encode(self.record) + b"\n")

    def _keep_config(self, folder: Path | None) -> None:
        """The model's config.json, where the server runs here and its model is a folder."""
        if folder is None or self.found.model is None:
            return
        config = folder / self.found.model / _CONFIG_FILE
        with contextlib.suppress(OSError):
            if config.stat().st_size < 1 << 20:
                shutil.copyfile(config, self.folder / _CONFIG_FILE)

    def __enter__(self) -> Self:
        if self.found.metrics:
            self._scraper: Scraper | None = self._threads.enter_context(
                Scraper(self.http, self.folder / "metrics.txt")
            )
        else:
            self._scraper = None
        if self.record.gpus:
            self._threads.enter_context(GpuSampler(self.folder / "gpm.csv"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._threads.close()
        self.sync()

    @property
    def can_profile(self) -> bool:
        """True when the server has a profiler and writes where we can read."""
        return self.found.profile is not None and is_local(self.address)

    def flush(self) -> bool:
        """Empty the server's prefix cache; False when it offers no route or refuses."""
        path = self.found.flush_path
        return path is not None and self._post_quietly(path, None)

    def sync(self) -> None:
        """Bring the copy of the log up to now."""
        if self._log_copy is not None:
            self._log_copy.catch_up()

    def level(self, plan: LevelPlan, why: str) -> LevelResult:
        """Drive one level and keep what came of it."""
        dialect = self._settled()
        self._wait_idle()
        if self._scraper is not None:
            self._scraper.scrape()
        result = _run(run_level(self.address, dialect, plan))
        if self._scraper is not None:
            self._scraper.scrape()
        level = msgspec.structs.replace(result.level, failures=result.failures, health=result.health)
        append_level(self.folder, LevelRecord(why=why, level=level, stretches=result.stretches))
        self.sync()
        return result

    def _wait_idle(self) -> None:
        """Wait for dropped requests to leave the engine: one of the level before would run in the next one's batch."""
        if self.found.busy is None:
            time.sleep(_SETTLE_S)
            return
        deadline = time.monotonic() + _IDLE_WAIT_S
        with contextlib.suppress(Unreachable):
            while self.found.busy(self.http) and time.monotonic() < deadline:
                time.sleep(0.1)

    def warm_up(self, plan: LevelPlan) -> LevelResult:
        """Drive a level whose times are not kept: first requests compile and fill caches."""
        return _run(run_level(self.address, self._settled(), plan))

    def _settled(self) -> Dialect:
        if self._dialect is None:
            unknown = self.found.engine is None and self.found.model is not None
            self._dialect = (
                openai_surface.settle(self.http, self.found.model or "") if unknown else self.found.dialect
            )
        return self._dialect

    def profile(self, plan: LevelPlan, *, steps: int, step_ms: float) -> list[Path]:
        """Trace about `steps` decode steps of about `step_ms` under a load of its own, so that it spoils no level.

        Returns:
            The traces in this recording's folder, one a rank; none where the server has no profiler or wrote none
            in time.
        """
        route = self.found.profile
        if route is None or not self.can_profile:
            return []
        folder = Path(route.folder) if route.folder else self.folder.resolve() / "profile"
        folder.mkdir(parents=True, exist_ok=True)
        before = set(folder.rglob("*.json.gz"))
        body = route.body(str(folder), steps) if route.body else None

        async def loaded(dialect: Dialect) -> list[Path]:
            full = asyncio.Event()

            def look(progress: Progress) -> None:
                if progress.decoding >= (plan.concurrency or 1):
                    full.set()

            load = asyncio.create_task(run_level(self.address, dialect, plan, on_progress=look))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(full.wait(), plan.seconds / 2)
            started = await asyncio.to_thread(self._post_quietly, "/start_profile", body)
            found: list[Path] = []
            if started and not route.stops_itself:
                await asyncio.sleep(min(_TRACED_S, steps * step_ms / 1000))
                await asyncio.to_thread(self._post_quietly, "/stop_profile", None)
            deadline = time.monotonic() + _TRACE_WAIT_S
            while started and not found and time.monotonic() < deadline:
                await asyncio.sleep(0.5)
                found = await asyncio.to_thread(_whole_traces, folder, before)
            load.cancel()
            await asyncio.gather(load, return_exceptions=True)
            return found

        dialect = self._settled()
        self._wait_idle()
        traces = _run(loaded(dialect))
        self.sync()
        kept = []
        for number, trace in enumerate(traces):
            rank = "" if len(traces) == 1 else f"-{number}"
            kept.append(self.folder / f"decode{rank}.trace.json.gz")
            shutil.move(trace, kept[-1])
        return kept

    def _post_quietly(self, path: str, body: dict[str, object] | None) -> bool:
        try:
            return self.http.post(path, body, timeout_s=_TRACE_WAIT_S).ok
        except Unreachable:
            return False


def look_at(address: Address) -> Found:
    """What a server is, and nothing else; raises as `Session` does."""
    return _find(Http(address))


def _find(http: Http) -> Found:
    for find in ENGINES:
        found = find(http)
        if found is not None:
            return found
    raise UnreadableEvidence(
        f"{shown(http.address)}: it answers, but with the routes of no LLM server; check host and port, "
        "or give --header if it wants a key"
    )


def _run(work: Coroutine[Any, Any, T]) -> T:
    import uvloop  # noqa: PLC0415  # native, and only load needs it

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def _whole_traces(folder: Path, before: set[Path]) -> list[Path]:
    """The new traces, one a rank, once all of them can be read to their end and none has come for a second.

    A front end's own trace is far smaller than a rank's and is left out.
    """
    new = [path for path in folder.rglob("*.json.gz") if path not in before]
    if not new or time.time() - max(path.stat().st_mtime for path in new) < 1.0 or not all(map(_whole, new)):
        return []
    largest = max(path.stat().st_size for path in new)
    return sorted(path for path in new if 3 * path.stat().st_size >= largest)


def _whole(path: Path) -> bool:
    try:
        with gzip.open(path) as file:
            while file.read(1 << 20):
                pass
    except (OSError, EOFError):
        return False
    return True
