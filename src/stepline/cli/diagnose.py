"""`stepline diagnose TARGET...`: recorded evidence in, diagnosis out."""

import argparse
import sys
from pathlib import Path

import msgspec

from stepline.cli.calibration_file import add_calibration_argument, load
from stepline.cli.live_arguments import add_live_arguments, add_restart_arguments
from stepline.cli.output import add_output_arguments, check_output, deliver
from stepline.cli.progress import Progress
from stepline.cli.teller import Teller
from stepline.errors import SteplineError, UsageError
from stepline.evidence.run import ReadingDoubt, Run
from stepline.facts.calibrations import measured_gpu
from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.findings.diagnose import diagnose
from stepline.findings.diagnosis import Diagnosis
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Picture, Setup
from stepline.sources.address import is_url, lacks_scheme
from stepline.sources.read import TRACE_KIND, read, trace_files

SETUP = ("model", "gpu", "tp", "ep", "dp", "pp", "context_length")
"""What the user may say where the evidence does not."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `diagnose`."""
    parser.add_argument(
        "targets",
        nargs="+",
        metavar="TARGET",
        help="a server's URL, or files and folders of evidence, recognised by content",
    )
    add_setup_arguments(parser)
    add_live_arguments(parser)
    parser.add_argument("--save", metavar="DIR", help="keep what a live server said and how it was driven")
    add_restart_arguments(parser)
    add_output_arguments(parser)


def add_setup_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `SETUP`."""
    parser.add_argument("--model", help="config.json, model folder, or the name of a bundled model")
    parser.add_argument("--gpu", help="GPU name, for example h200 or rtx-pro-6000")
    parser.add_argument("--tp", type=int, help="tensor-parallel size")
    parser.add_argument("--ep", type=int, help="expert-parallel size")
    parser.add_argument("--dp", type=int, help="data-parallel size")
    parser.add_argument("--pp", type=int, help="pipeline-parallel size")
    parser.add_argument("--context-length", type=int, help="context in tokens, where no evidence says it")
    add_calibration_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Read, assess, diagnose, report."""
    for target in args.targets:
        if lacks_scheme(target) and not Path(target).exists():
            raise UsageError(f"{target}: no such file; for a server give http://{target}")
    if any(is_url(target) for target in args.targets):
        if len(args.targets) > 1:
            raise UsageError(
                "give one server's URL alone; recorded evidence of it is found or given with --log"
            )
        check(args)
        check_output(args)
        # Load and HTTP, only for a live server.
        if args.restart is not None:
            from stepline.cli.trial import diagnose_and_try  # noqa: PLC0415

            return diagnose_and_try(args.targets[0], args)
        from stepline.cli.live import diagnose_server  # noqa: PLC0415

        answer = diagnose_server(args.targets[0], args)
        code = deliver(answer.diagnosis, args)
        Teller(quiet=args.quiet)(*answer.next_steps)
        return code
    if args.restart is not None:
        raise UsageError("--restart: only a running server can be restarted; give its URL")
    return deliver(diagnose_paths(args.targets, args), args)


def diagnose_paths(targets: list[str], args: argparse.Namespace) -> Diagnosis:
    """The diagnosis of files and folders under the settings of the command line."""
    check(args)
    return diagnose(picture_of(targets, args))


def picture_of(targets: list[str], args: argparse.Namespace) -> Picture:
    """Everything that files and folders say, as rules see it."""
    progress = Progress(quiet=args.quiet)
    try:
        evidence = read(targets, progress.file, progress.bytes)
    finally:
        progress.end()
    evidence = _with_trace(evidence, targets, args)
    setup = Setup(
        model=args.model,
        gpu=args.gpu,
        tp=args.tp,
        ep=args.ep,
        dp=args.dp,
        pp=args.pp,
        context_length=args.context_length,
        calibration=load(args.calibration),
    )
    if args.model is not None and Path(args.model).exists():
        evidence = _with_model(evidence, args.model)
    picture = assess(evidence, setup)
    _check_calibration(picture, args)
    return picture


def _check_calibration(picture: Picture, args: argparse.Namespace) -> None:
    """Say when the calibration that was named is of another GPU than the server's."""
    target = picture.target
    if args.calibration is None or target.calibration is None or target.gpu is None:
        return
    measured = measured_gpu(target.calibration)
    if measured != target.gpu.name and not args.quiet:
        print(
            f"{args.calibration} is of {measured}, the server runs on {target.gpu.name}: not used",
            file=sys.stderr,
        )


def check(args: argparse.Namespace) -> None:
    """Refuse a command line that cannot be right before anything is read.

    Raises:
        UnknownFact: when no data file knows the GPU or model.
        UsageError: when a size is not above zero.
    """
    if args.gpu is not None:
        find_gpu(args.gpu)
    if args.model is not None and not Path(args.model).exists():
        find_model(args.model)
    for name in SETUP[2:]:
        size = getattr(args, name)
        if size is not None and size < 1:
            raise UsageError(f"--{name.replace('_', '-')} {size}: give a number above zero")


def _with_trace(evidence: Run, targets: list[str], args: argparse.Namespace) -> Run:
    """Condense the profiler traces among the targets into the run, unless a saved run brought its own."""
    if evidence.trace is not None or not any(file.kind == TRACE_KIND for file in evidence.files):
        return evidence
    from stepline.cli.trace import summarise_paths  # noqa: PLC0415  # numpy, only for traces

    configured = evidence.server.context_length
    context_tokens = configured.value if configured is not None else args.context_length
    try:
        summary = summarise_paths(
            trace_files(targets), context_tokens=context_tokens, gpu=args.gpu, quiet=args.quiet
        )
    except SteplineError as error:
        doubt = ReadingDoubt(topic="trace", text=f"the trace was left out: {error}")
        return msgspec.structs.replace(evidence, doubts=(*evidence.doubts, doubt))
    ranks = tuple(msgspec.structs.replace(rank, file=_named(rank.file, targets)) for rank in summary.ranks)
    return msgspec.structs.replace(evidence, trace=msgspec.structs.replace(summary, ranks=ranks))


def _named(file: str, targets: list[str]) -> str:
    """A trace's name as other evidence is named: within its target, without the folders of this machine."""
    for target in map(Path, targets):
        if target.is_dir() and Path(file).is_relative_to(target):
            return str(Path(file).relative_to(target))
    return Path(file).name


def _with_model(evidence: Run, path: str) -> Run:
    folder = Path(path)
    config = read([folder / "config.json" if folder.is_dir() else folder]).model_config
    if config is None:
        raise UsageError(f"{path}: no model config.json; give the file, its folder, or a bundled name")
    return msgspec.structs.replace(evidence, model_config=config)
