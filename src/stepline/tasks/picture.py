"""From paths to evidence to a picture: the one place where profiler traces are condensed into what was read."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from stepline.errors import SteplineError, UsageError
from stepline.evidence.run import ReadingDoubt, Run
from stepline.facts.calibrations import measured_gpu
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Picture
from stepline.sources.read import read as read_files
from stepline.sources.read import trace_files
from stepline.tasks.progress import SILENT, Progress
from stepline.tasks.setup import UNTOLD, SetupRequest, setup_of

Paths = str | Path | Iterable[str | Path]


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What was read, with its profiler traces condensed."""

    runs: tuple[Run, ...]
    """One so far: everything that was read together is taken for one server."""
    targets: tuple[Path, ...] = ()
    """The paths whose traces are condensed into the run; empty where it has none or a saved run brought its own.

    They are read again only where a configured context is given afterwards that the evidence does not have: which
    kernels follow the context is decided while a trace is condensed.
    """


def read(paths: Paths, setup: SetupRequest = UNTOLD, progress: Progress = SILENT) -> Evidence:
    """Read files and folders, recognised by content, and condense the traces among them.

    Raises:
        UsageError: when a path does not exist.
        UnreadableEvidence: when nothing under the paths could be read.
    """
    targets = (Path(paths),) if isinstance(paths, str | Path) else tuple(Path(path) for path in paths)
    try:
        run = read_files(targets, progress.file, progress.bytes)
    finally:
        progress.end()
    if run.trace is not None or not any(file.kind == "profiler trace" for file in run.files):
        return Evidence(runs=(run,))
    return Evidence(runs=(_condensed(run, targets, setup, progress),), targets=targets)


def picture_of(
    evidence: Evidence | Run | Paths, setup: SetupRequest = UNTOLD, progress: Progress = SILENT
) -> Picture:
    """Everything that the evidence says, as rules see it.

    Raises:
        UsageError: a path does not exist, or `model` names no config.
        UnreadableEvidence: nothing could be read, or the calibration is none.
    """
    picture = assess(_run_of(evidence, setup, progress), setup_of(setup))
    target = picture.target
    if setup.calibration is not None and target.calibration is not None and target.gpu is not None:
        measured = measured_gpu(target.calibration)
        if measured != target.gpu.name:
            progress.tell(
                f"{setup.calibration} is of {measured}, the server runs on {target.gpu.name}: not used"
            )
    return picture


def _run_of(evidence: Evidence | Run | Paths, setup: SetupRequest, progress: Progress) -> Run:
    if isinstance(evidence, Run):
        evidence = Evidence(runs=(evidence,))
    elif not isinstance(evidence, Evidence):
        evidence = read(evidence, setup, progress)
    (run,) = evidence.runs
    if run.trace is not None:
        if evidence.targets and run.trace.context_tokens != _context(run, setup):
            run = _condensed(run, evidence.targets, setup, progress)
        if run.trace is not None and setup.gpu is not None:
            from stepline.tasks.traces import with_gpu  # noqa: PLC0415

            run = msgspec.structs.replace(run, trace=with_gpu(run.trace, setup.gpu))
    if setup.model is not None and Path(setup.model).exists():
        run = _with_model(run, Path(setup.model))
    return run


def _context(run: Run, setup: SetupRequest) -> int | None:
    """The configured context in tokens: what the evidence says, else the user."""
    configured = run.server.context_length
    return configured.value if configured is not None else setup.context_length


def _condensed(run: Run, targets: tuple[Path, ...], setup: SetupRequest, progress: Progress) -> Run:
    from stepline.tasks.traces import TraceRequest, summarise  # noqa: PLC0415  # numpy, only for traces

    try:
        request = TraceRequest(paths=tuple(trace_files(targets)), context_length=_context(run, setup))
        summary = summarise(request, progress)
    except SteplineError as error:
        doubt = ReadingDoubt(topic="trace", text=f"the trace was left out: {error}")
        return msgspec.structs.replace(run, doubts=(*run.doubts, doubt))
    ranks = tuple(msgspec.structs.replace(rank, file=_named(rank.file, targets)) for rank in summary.ranks)
    return msgspec.structs.replace(run, trace=msgspec.structs.replace(summary, ranks=ranks))


def _named(file: str, targets: tuple[Path, ...]) -> str:
    """A trace's name as other evidence is named: within its target, without the folders of this machine."""
    for target in targets:
        if target.is_dir() and Path(file).is_relative_to(target):
            return str(Path(file).relative_to(target))
    return Path(file).name


def _with_model(run: Run, path: Path) -> Run:
    config = read_files([path / "config.json" if path.is_dir() else path]).model_config
    if config is None:
        raise UsageError(f"{path}: no model config.json; give the file, its folder, or a bundled name")
    return msgspec.structs.replace(run, model_config=config)
