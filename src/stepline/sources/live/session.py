"""One recording of one running server: a folder that is readable whenever the recording stops."""

import asyncio
import contextlib
import gzip
import itertools
import os
import shutil
import time
import zlib
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from stepline.errors import UnreadableEvidence, UsageError
from stepline.evidence.bundle import PART
from stepline.sources import openai_surface
from stepline.sources.address import is_local, secrets, shown
from stepline.sources.client_file import METRICS_FILE, SERVER_FILE, LevelRecord, ServerRecord, append_level
from stepline.sources.engines import ENGINES
from stepline.sources.http import Http, Unreachable
from stepline.sources.live.gpu import GpuSampler, gpu_names
from stepline.sources.live.log_copy import LogCopy, LogMark
from stepline.sources.live.process import LocalServer, find_local
from stepline.sources.live.scraper import Scraper
from stepline.sources.load.dialect import Dialect
from stepline.sources.load.drive import run_level
from stepline.sources.load.level import Address, LevelPlan, LevelResult, Progress
from stepline.sources.redact import redact
from stepline.sources.surface import Found

T = TypeVar("T")
FINDERS = (*(engine.find for engine in ENGINES if engine.find is not None), openai_surface.find)
"""In the order they are asked: an engine's own routes before those that all of them share."""
_LOG_FILE = "server.log"
_CONFIG_FILE = "config.json"
DCGM_FILE = "dcgm.txt"
_SETTLE_S = 1.0
"""Where no route counts requests: an engine notices a closed connection within some steps."""
_IDLE_WAIT_S = 10.0
"""Others may use the server too, so this ends."""
_TRACED_S = 2.0
"""Longest trace of an engine that does not count steps itself: every traced second is tens of MB."""
_TRACE_WAIT_S = 60.0
"""A trace without Python stacks was written within 5 s on the H200 captures; an eager one takes longest."""
_START_WAIT_S, _STOP_WAIT_S = 15.0, 5.0
"""To begin a trace takes engines a second or two; to call one off is a courtesy that nobody waits long for."""
_MAX_TRACES = 10_000
_MAX_TRACE_BYTES = 8 << 30
"""Of a trace unpacked: the largest captures have under one."""
_MAX_CONFIG_BYTES = 1 << 20


class _ModelConfig(msgspec.Struct):
    """Enough of a model's config.json to tell it from others of that name."""

    model_type: str


class Session:
    """A recording into `folder`, between `__enter__` and `__exit__`.

    Everything is written as it comes, in the formats that recorded evidence has anyway, so that an
    interruption loses the level in progress and nothing else.
    """

    def __init__(
        self,
        address: Address,
        folder: Path,
        *,
        log: Path | None = None,
        since: LogMark | None = None,
        restarted_with: str | None = None,
        dcgm: Address | None = None,
    ) -> None:
        """Find out what the server is.

        Args:
            address: where it is.
            folder: of the recording.
            log: its log, where that is not found by itself.
            since: of that log, only what comes after is this server's.
            restarted_with: the flags that it was started with for this recording.
            dcgm: where a DCGM exporter of the server's machine answers, for GPU counters of another machine.

        Raises:
            Unreachable: nobody answers.
            UnreadableEvidence: something answers that is no LLM server.
            UsageError: the folder is not empty or cannot be made, or the given log is no file.
            OSError: a file cannot be written.
        """
        if log is not None and not (log.is_file() and os.access(log, os.R_OK)):
            raise UsageError(f"--log {log}: no file that can be read")
        self.http = Http(address)
        self.address, self.folder = address, folder
        self.found = _find(self.http)
        claim(folder)
        self._dialect: Dialect | None = None
        self._secrets = secrets(address)
        listener = find_local(address.port) if is_local(address) else None
        local = None if listener is None or listener.forwards else listener
        self._here = is_local(address) and not (listener and listener.forwards)
        self._server_folder = local.folder if local else None
        source = log or (local.log if local else None)
        self.log = source
        self._log_copy = (
            None
            if source is None
            else LogCopy(source, folder / _LOG_FILE, self._clean, self.found.start_mark, since)
        )
        self.record = ServerRecord(
            url=shown(address),
            engine=self.found.engine,
            engine_version=self.found.version,
            model=self.found.model,
            context_tokens=self.found.max_context_tokens,
            gpus=gpu_names() if local else (),
            lacks=self.found.lacks + _lacking(source, listener),
            started_s=time.time(),
            restarted_with=restarted_with if restarted_with is None else self._clean(restarted_with),
        )
        for name, body in self.found.files.items():
            (folder / name).write_text(self._clean(body.decode("utf-8", "replace")), "utf-8")
        self._keep_config()
        self.write_record()
        self._threads = contextlib.ExitStack()
        self._dcgm = dcgm
        self.processes = 1
        """Of the load client."""

    def write_record(self, **changes: object) -> None:
        """Write `server.json` anew, with changed fields."""
        self.record = msgspec.structs.replace(self.record, **changes)
        part = self.folder / f".{SERVER_FILE}{PART}"
        part.write_bytes(msgspec.json.encode(self.record) + b"\n")
        part.replace(self.folder / SERVER_FILE)  # whoever reads meanwhile, or after a kill, finds a whole one

    def _clean(self, text: str) -> str:
        """Text of the server as it may be kept: without keys, those that it echoes included."""
        return redact(text, self._secrets)

    def _keep_config(self) -> None:
        """The model's config.json, where the server runs here and its model is a folder.

        The server says where that is, and other programs keep keys in files of that name: only what reads as a
        model's is kept.
        """
        if self._server_folder is None or self.found.model is None:
            return
        config = self._server_folder / self.found.model / _CONFIG_FILE
        with contextlib.suppress(OSError, ValueError):
            if config.is_file() and config.stat().st_size < _MAX_CONFIG_BYTES:
                content = config.read_bytes()
                msgspec.json.decode(content, type=_ModelConfig)
                (self.folder / _CONFIG_FILE).write_bytes(content)

    def __enter__(self) -> Self:
        if self.found.metrics:
            self._scraper: Scraper | None = self._threads.enter_context(
                Scraper(self.http, self.folder / METRICS_FILE)
            )
        else:
            self._scraper = None
        if self._dcgm is not None:
            self._threads.enter_context(Scraper(Http(self._dcgm), self.folder / DCGM_FILE))
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
        return self._here and self._trace_folder() is not None

    def _trace_folder(self) -> Path | None:
        """Where the profiler writes: in this recording if the request can say so, else where the server says."""
        route = self.found.profile
        if route is None or route.folder is None:
            return None if route is None else self.folder.resolve() / "profile"
        if Path(route.folder).is_absolute():
            return Path(route.folder)
        if self._server_folder is None or "://" in route.folder:
            return None
        return self._server_folder / route.folder

    def flush(self) -> bool:
        """Empty the server's prefix cache; False when it offers no route or refuses."""
        path = self.found.flush_path
        return path is not None and self._post_quietly(path, None, _STOP_WAIT_S)

    def sync(self) -> None:
        """Bring the copy of the log up to now."""
        if self._log_copy is not None:
            self._log_copy.catch_up()

    def level(self, plan: LevelPlan, why: str) -> LevelResult:
        """Drive one level and keep what came of it."""
        dialect = self._settled()
        if self._scraper is not None:
            self._scraper.scrape()
        processes = min(self.processes, plan.concurrency or self.processes)
        result = _run(run_level(self.address, dialect, plan, processes=processes))
        if self._scraper is not None:
            self._scraper.scrape()
        first = result.failures.first
        failures = msgspec.structs.replace(result.failures, first=first and self._clean(first))
        result = msgspec.structs.replace(result, failures=failures)
        level = msgspec.structs.replace(result.level, failures=result.failures, health=result.health)
        append_level(self.folder, LevelRecord(why=why, level=level, stretches=result.stretches))
        self.sync()
        return result

    def wait_idle(self) -> int:
        """As the function of that name, of this server."""
        return wait_idle(self.found, self.http)

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

    def profile(
        self, plan: LevelPlan, *, steps: int, step_ms: float, longest_s: float = _TRACE_WAIT_S
    ) -> list[Path]:
        """Trace about `steps` decode steps of about `step_ms` under a load of its own, so that it spoils no level.

        Whatever happens meanwhile, Ctrl-C included, the profiler is told to stop: left running it would slow the
        server and fill its disk.

        Returns:
            The traces in this recording's folder, one a rank; none where the server has no profiler or wrote none
            in time.
        """
        route, folder = self.found.profile, self._trace_folder()
        if route is None or folder is None or not self.can_profile:
            return []
        if route.folder is None:
            folder.mkdir(exist_ok=True)
        before = _traces(folder)
        body = route.body(str(folder), steps) if route.body else None
        deadline = time.monotonic() + longest_s

        def left_s(most: float) -> float:
            return min(most, max(1.0, deadline - time.monotonic()))

        async def loaded(dialect: Dialect) -> list[Path]:
            full = asyncio.Event()

            def look(progress: Progress) -> None:
                if progress.decoding >= (plan.concurrency or 1):
                    full.set()

            load = asyncio.create_task(run_level(self.address, dialect, plan, on_progress=look))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(full.wait(), plan.seconds / 2)
            found: list[Path] = []
            try:
                started = await asyncio.to_thread(
                    self._post_quietly, "/start_profile", body, left_s(_START_WAIT_S)
                )
                if started and not route.stops_itself:
                    await asyncio.sleep(min(_TRACED_S, steps * step_ms / 1000))
                    await asyncio.to_thread(self._post_quietly, "/stop_profile", None, left_s(_TRACE_WAIT_S))
                while started and not found and time.monotonic() < deadline:
                    await asyncio.sleep(0.5)
                    found = await asyncio.to_thread(_whole_traces, folder, before)
            finally:
                if not found:
                    self._post_quietly("/stop_profile", None, _STOP_WAIT_S)
                load.cancel()
                await asyncio.gather(load, return_exceptions=True)
            return found

        traces = _run(loaded(self._settled()))
        self.sync()
        kept = []
        for number, trace in enumerate(traces):
            rank = "" if len(traces) == 1 else f"-{number}"
            kept.append(self.folder / f"decode{rank}.trace.json.gz")
            if route.folder is None:
                shutil.move(trace, kept[-1])
            else:
                shutil.copyfile(trace, kept[-1])  # the server's folder is not ours to take from
        return kept

    def _post_quietly(self, path: str, body: dict[str, object] | None, timeout_s: float) -> bool:
        try:
            return self.http.post(path, body, timeout_s=timeout_s).ok
        except Unreachable:
            return False


def claim(folder: Path) -> None:
    """Make the folder; two recordings in one, or one among other evidence, would be read as one server's.

    Raises:
        UsageError: it holds files, or cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = any(not path.name.startswith(".") for path in folder.iterdir())
    except OSError as error:
        raise UsageError(f"{folder}: not a folder to write in ({error.strerror}); choose another") from None
    if taken:
        raise UsageError(
            f"{folder}: holds files already, which would be read with the recording; name a new folder"
        )


def wait_idle(found: Found, http: Http) -> int:
    """Wait for dropped requests to leave the engine: one of the level before would run in the next one's batch.

    Returns:
        How many still run or wait after ten seconds: somebody else's.
    """
    if found.busy is None:
        time.sleep(_SETTLE_S)
        return 0
    deadline = time.monotonic() + _IDLE_WAIT_S
    with contextlib.suppress(Unreachable):
        while left := found.busy(http):
            if time.monotonic() >= deadline:
                return left
            time.sleep(0.1)
    return 0


def look_at(address: Address) -> Found:
    """What a server is, and nothing else; raises as `Session` does."""
    return _find(Http(address))


def _find(http: Http) -> Found:
    for find in FINDERS:
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


def _lacking(log: Path | None, listener: LocalServer | None) -> tuple[str, ...]:
    lacks = () if log else ("the log: give its file with --log",)
    if listener and listener.forwards:
        return (
            *lacks,
            f"the server's own machine: here only {listener.forwards} listens and passes on; give --gpu",
        )
    return lacks


def _traces(folder: Path) -> set[Path]:
    """Traces in a folder and in those right below it.

    The folder is the server's word, so neither all of a disk is walked nor a link followed.
    """
    found = itertools.islice(
        itertools.chain(folder.glob("*.json.gz"), folder.glob("*/*.json.gz")), _MAX_TRACES
    )
    return {path for path in found if path.is_file() and not path.is_symlink()}


def _whole_traces(folder: Path, before: set[Path]) -> list[Path]:
    """The new traces, one a rank, once all of them can be read to their end and none has come for a second.

    A front end's own trace is far smaller than a rank's and is left out.
    """
    new = _traces(folder) - before
    if not new or time.time() - max(path.stat().st_mtime for path in new) < 1.0 or not all(map(_whole, new)):
        return []
    largest = max(path.stat().st_size for path in new)
    return sorted(path for path in new if 3 * path.stat().st_size >= largest)


def _whole(path: Path) -> bool:
    try:
        with gzip.open(path) as file:
            while file.read(1 << 20):
                if file.tell() > _MAX_TRACE_BYTES:
                    return False
    except (OSError, EOFError, zlib.error):
        return False
    return True
