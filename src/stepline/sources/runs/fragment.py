"""Fragment: what one file says of one server, and what tells that server and its time from others."""

from collections.abc import Iterable
from pathlib import PurePath
from typing import Literal

import msgspec

from stepline.errors import UnknownFact
from stepline.evidence.run import Run
from stepline.facts.hardware import find_gpu

Kind = Literal[
    "bundle", "log", "info", "scrape", "client", "steps", "trace", "gpu", "trials", "config", "other"
]
ORDER: tuple[Kind, ...] = (
    "bundle", "log", "info", "scrape", "client", "steps", "trace", "gpu", "trials", "config", "other"
)  # fmt: skip
"""Who tells most about its server comes first; the rest is put beside it."""
FACTS = (
    *("engine", "version", "tp", "dp", "pp", "ep", "context_length", "max_running"),
    *("kv_capacity_tokens", "decode_graphs", "disaggregation"),
)
"""Facts that cannot differ between two files about one start of one server."""
SEED = "random_seed"
"""SGLang draws it anew at each start unless it is set (`server_args.py`: `_handle_missing_default_values`)."""
NO_YEAR_S = 63_072_000.0, 94_694_400.0
"""1972, where readers put a log that prints no year."""


class Span(msgspec.Struct, frozen=True):
    """First and last time that a file tells, in seconds."""

    first_s: float
    last_s: float


class Fragment(msgspec.Struct, kw_only=True):
    """One file's share in one run."""

    run: Run
    file: str
    place: int
    """In the order of reading."""
    kind: Kind
    facts: dict[str, object]
    models: frozenset[str]
    gpu: str | None
    seed: str | None
    arguments: dict[str, str] | None
    """All settings in force, where the file lists them."""
    port: int | None
    process_start_s: float | None
    clock: Span | None
    """By a clock that tells the epoch."""
    local: Span | None
    """By a log's or client's own clock, whose zone is not known."""

    @property
    def folder(self) -> str:
        """The folder it lies in, as named to the user."""
        return str(PurePath(self.file).parent)


def fragment_of(run: Run, place: int, kind: Kind | None = None) -> Fragment:
    """The fragment that a file's run is."""
    start, server = run.start, run.server
    names = [name for name in (*(start.names if start else ()), *_models_of(run)) if name]
    local = _log_span(run)
    return Fragment(
        run=run,
        file=run.files[0].path if run.files else "",
        place=place,
        kind=kind or _kind(run),
        facts={name: known.value for name in FACTS if (known := getattr(server, name)) is not None},
        models=frozenset(bare_model(name) for name in names),
        gpu=None if server.gpu is None else _gpu(server.gpu.value),
        seed=None if start is None else start.arguments.get(SEED),
        arguments=(start.arguments or None) if start else None,
        port=None if start is None else start.port,
        process_start_s=None if start is None else start.process_start_s,
        clock=_clock(run, local),
        local=local,
    )


def bare_model(name: str) -> str:
    """A model's name without its owner, its folders and its case."""
    parts = [part for part in name.lower().rstrip("/").split("/") if part]
    cached = next((part for part in parts if part.startswith("models--")), None)
    if cached is not None:
        return cached.rpartition("--")[2]
    return parts[-1].rpartition("--")[2] if parts else ""


def _models_of(run: Run) -> Iterable[str]:
    if run.server.model is not None:
        yield run.server.model.value
    if not (run.start and run.start.names):
        yield from {level.model for level in run.levels if level.model}


def _gpu(name: str) -> str | None:
    try:
        return find_gpu(name).name
    except UnknownFact:
        return None


def _kind(run: Run) -> Kind:
    kind = run.files[0].kind if run.files else None
    started = run.start is not None and (run.start.origin is not None or bool(run.start.arguments))
    if run.decodes or run.prefills or (kind == "server log" and (started or run.server.model is not None)):
        return "log"
    if kind == "server info":
        return "info"
    if run.levers:
        return "trials"
    if run.levels or run.stretches:
        return "client"
    if run.metrics:
        return "scrape"
    if run.step_rows:
        return "steps"
    if run.trace is not None or kind == "profiler trace":
        return "trace"
    if run.gpu_samples or (run.server.gpu is not None and run.server.engine is None):
        return "gpu"
    return "config" if run.model_config is not None else "other"


def _log_span(run: Run) -> Span | None:
    start = run.start
    printed = run.files[0].kind == "server log" if run.files else False
    if printed and start is not None and start.first_s is not None and start.last_s is not None:
        return Span(start.first_s, start.last_s)
    wrote = [
        (level.wrote_s - (level.duration_s or 0.0), level.wrote_s)
        for level in run.levels
        if level.wrote_s is not None
    ]
    return Span(min(w[0] for w in wrote), max(w[1] for w in wrote)) if wrote else None


def _clock(run: Run, local: Span | None) -> Span | None:
    times = [
        *(level.start_s for level in run.levels),
        *(level.end_s for level in run.levels),
        *(scrape.time_s for scrape in run.metrics),
        *(sample.time_s for sample in run.gpu_samples),
    ]
    if run.start is not None and local is None:
        times += [run.start.first_s, run.start.last_s]
    told = [time for time in times if time is not None and time > NO_YEAR_S[1]]
    return Span(min(told), max(told)) if told else None
