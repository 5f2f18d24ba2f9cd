"""`stepline trace PATH...`: steps, components, kernels and ranks of GPU traces."""

import argparse
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from stepline.errors import Inconclusive, UsageError
from stepline.evidence.trace import RankTrace, TraceSummary

if TYPE_CHECKING:
    from stepline.model.trace.ranks import Arrivals

_PARALLEL_FROM_BYTES = 4 << 20
"""Compressed bytes from which a process of its own (about 0.3 s to start) pays for a second file."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `trace`."""
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", type=Path, help="traces, or folders of them, any rank count"
    )
    parser.add_argument("--context-length", type=int, metavar="N", help="configured context in tokens")
    parser.add_argument(
        "--step-ms", type=float, metavar="X", help="a decode step's wall measured without the profiler"
    )
    parser.add_argument("--gpu", metavar="NAME", help="the GPU, where the trace does not name it")
    parser.add_argument(
        "--top", type=int, default=12, metavar="K", help="kernels shown (default %(default)s)"
    )
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="write the summary as JSON; - or nothing for stdout",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    """Read, account, print.

    Raises:
        UsageError: for a context or step that cannot be.
        UnreadableEvidence: where a path is no trace.
        Inconclusive: where the traces hold no GPU work.
    """
    if args.context_length is not None and args.context_length < 1:
        raise UsageError(f"--context-length {args.context_length}: a context has at least one token")
    if args.step_ms is not None and args.step_ms <= 0:
        raise UsageError(f"--step-ms {args.step_ms}: a step takes more than no time")
    summary = summarise_paths(
        args.paths, context_tokens=args.context_length, step_ms=args.step_ms, gpu=args.gpu, quiet=args.quiet
    )
    if not any(rank.gpu_events for rank in summary.ranks):
        doubts = [doubt for rank in summary.ranks for doubt in rank.doubts]
        cut = next((doubt.text for doubt in doubts if doubt.topic == "truncated"), None)
        way_out = "record them with CUDA activities" if cut is None else f"{cut}; copy it again"
        raise Inconclusive(f"the traces hold no GPU work: {way_out}")
    if args.json:
        data = msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n"
        if args.json == "-":
            sys.stdout.buffer.write(data)
            return 0
        Path(args.json).write_bytes(data)
    from stepline.cli.trace_view import show  # noqa: PLC0415 - rich is slow to import

    show(summary, args.top)
    return 0


def summarise_paths(
    paths: list[Path],
    *,
    context_tokens: int | None = None,
    step_ms: float | None = None,
    gpu: str | None = None,
    quiet: bool = True,
) -> TraceSummary:
    """The summary of all traces found in paths, ranks side by side where there are cores."""
    from stepline.sources.readers import traces  # noqa: PLC0415

    files = traces.find(paths)
    jobs = [(file, context_tokens, step_ms, gpu) for file in files]
    parts: list[tuple[RankTrace, Arrivals]] = []
    for number, found in enumerate(_each(jobs, files, quiet=quiet), 1):
        parts += found
        if not quiet and len(files) > 1 and sys.stderr.isatty():
            print(
                f"\rread {number} of {len(files)} traces",
                end="\n" if number == len(files) else "",
                file=sys.stderr,
            )
    from stepline.model.trace import join  # noqa: PLC0415 - numpy, imported beside a second process' start

    return join(parts, context_tokens=context_tokens)


Job = tuple[Path, int | None, float | None, str | None]


def _each(jobs: list[Job], files: list[Path], *, quiet: bool) -> Iterator[list[tuple[RankTrace, "Arrivals"]]]:
    """Condense file by file; in processes of their own where that is worth starting them."""
    workers = min(len(jobs), os.cpu_count() or 1)
    if workers > 1 and sum(file.stat().st_size for file in files) > 2 * _PARALLEL_FROM_BYTES:
        from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415
        from multiprocessing import get_context  # noqa: PLC0415

        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            yield from pool.map(condense, jobs)
    else:
        for job in jobs:
            yield condense(job, progress=not quiet and sys.stderr.isatty(), processes=os.cpu_count() or 1)


def condense(job: Job, *, progress: bool = False, processes: int = 1) -> list[tuple[RankTrace, "Arrivals"]]:
    """One file to the summaries of its processes."""
    collecting = gc.isenabled()
    gc.disable()  # events are acyclic; the collector would scan them for nothing
    try:
        return _condensed(job, progress=progress, processes=processes)
    finally:
        if collecting:
            gc.enable()


def _condensed(job: Job, *, progress: bool, processes: int) -> list[tuple[RankTrace, "Arrivals"]]:
    from stepline.sources.readers import traces  # noqa: PLC0415

    path, context_tokens, step_ms, gpu = job

    def tell(read: int) -> None:
        print(f"\r{path.name}: {read / 1e6:,.0f} MB read", end="", file=sys.stderr)

    raws = traces.read(path, tell if progress else None, processes=processes)
    if progress:
        print("\r\x1b[K", end="", file=sys.stderr)
    from stepline.model.trace import rank  # noqa: PLC0415

    found = [rank(raw, context_tokens=context_tokens, unprofiled_step_ms=step_ms) for raw in raws]
    return [(_named(one, gpu), arrivals) for one, arrivals in found]


def _named(rank: RankTrace, gpu: str | None) -> RankTrace:
    if gpu is None or rank.device is None or rank.device.name:
        return rank
    return msgspec.structs.replace(rank, device=msgspec.structs.replace(rank.device, name=gpu))
