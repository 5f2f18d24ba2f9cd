"""From paths to evidence to a picture: the one place where profiler traces are condensed into what was read."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from stepline.errors import SteplineError, UsageError
from stepline.evidence.evidence import Evidence
from stepline.evidence.run import ReadingDoubt, Run
from stepline.facts.calibrations import measured_gpu
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Picture
from stepline.sources.read import one_run, read_one_run, trace_files
from stepline.sources.read import read as read_files
from stepline.tasks.progress import SILENT, Progress
from stepline.tasks.setup import UNTOLD, SetupRequest, setup_of

Paths = str | Path | Iterable[str | Path]


def read(paths: Paths, setup: SetupRequest = UNTOLD, progress: Progress = SILENT) -> Evidence:
    """Read files and folders, recognised by content, tell the runs apart, and condense the traces of each.

    Raises:
        UsageError: when a path does not exist.
        UnreadableEvidence: when nothing under the paths could be read.
    """
    targets = (Path(paths),) if isinstance(paths, str | Path) else tuple(Path(path) for path in paths)
    try:
        evidence = read_files(targets, progress.file, progress.bytes)
    finally:
        progress.end()
    if not any(_traces(run) for run in evidence.runs):
        return evidence
    runs = tuple(_condensed(run, targets, setup, progress) if _traces(run) else run for run in evidence.runs)
    return msgspec.structs.replace(evidence, runs=runs, targets=tuple(str(target) for target in targets))


def _traces(run: Run) -> frozenset[str]:
    """The traces to be condensed into a run; a saved run brought its own."""
    if run.trace is not None:
        return frozenset()
    return frozenset(file.path for file in run.files if file.kind == "profiler trace")


def pictures_of(
    evidence: Evidence | Run | Paths, setup: SetupRequest = UNTOLD, progress: Progress = SILENT
) -> tuple[Picture, ...]:
    """Everything that the evidence says of each run, as rules see it.

    Raises:
        UsageError: a path does not exist, or `model` names no config.
        UnreadableEvidence: nothing could be read, or the calibration is none.
    """
    known = setup_of(setup)
    told = told_by(evidence, setup, progress)
    pictures = tuple(assess(_known(run, told, setup, progress), known) for run in told.runs)
    for picture in pictures:
        target = picture.target
        if setup.calibration is not None and target.calibration is not None and target.gpu is not None:
            measured = measured_gpu(target.calibration)
            if measured != target.gpu.name:
                progress.tell(
                    f"{setup.calibration} is of {measured}, the server runs on {target.gpu.name}: not used"
                )
                break
    return pictures


def picture_of(
    evidence: Evidence | Run | Paths, setup: SetupRequest = UNTOLD, progress: Progress = SILENT
) -> Picture:
    """As `pictures_of`, of evidence of one run.

    Raises:
        UsageError: it is of several runs, or as `pictures_of`.
    """
    told = told_by(evidence, setup, progress)
    (run,) = (one_run(told),)
    return pictures_of(msgspec.structs.replace(told, runs=(run,)), setup, progress)[0]


def told_by(
    evidence: Evidence | Run | Paths, setup: SetupRequest = UNTOLD, progress: Progress = SILENT
) -> Evidence:
    """Evidence as it is, a run as evidence of itself, paths read."""
    if isinstance(evidence, Run):
        return Evidence(runs=(evidence,))
    return evidence if isinstance(evidence, Evidence) else read(evidence, setup, progress)


def _known(run: Run, told: Evidence, setup: SetupRequest, progress: Progress) -> Run:
    """The run with what the user says of its model, GPU and configured context."""
    if run.trace is not None:
        named = frozenset(file.path for file in run.files if file.kind == "profiler trace")
        if told.targets and named and run.trace.context_tokens != _context(run, setup):
            targets = tuple(Path(target) for target in told.targets)
            run = _condensed(msgspec.structs.replace(run, trace=None), targets, setup, progress)
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
        named = _traces(run)
        files = tuple(path for path, name in trace_files(targets) if name in named)
        request = TraceRequest(paths=files, context_length=_context(run, setup))
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
    config = read_one_run([path / "config.json" if path.is_dir() else path]).model_config
    if config is None:
        raise UsageError(f"{path}: no model config.json; give the file, its folder, or a bundled name")
    return msgspec.structs.replace(run, model_config=config)
