"""Trace files to a TraceSummary: the ranks side by side where there are cores."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from stepline.errors import Inconclusive, UsageError
from stepline.evidence.trace import RankTrace, TraceSummary
from stepline.tasks.progress import SILENT, Progress

if TYPE_CHECKING:
    from stepline.model.trace.ranks import Arrivals

PARALLEL_FROM_BYTES = 4 << 20
"""Compressed bytes from which a process of its own (about 0.3 s to start) pays for a second file."""


class TraceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which traces, and what is known beside them."""

    paths: tuple[Path, ...]
    """Trace files, or folders of them."""
    context_length: int | None = None
    """Configured longest context in tokens; None where nobody said."""
    step_ms: float | None = None
    """Wall of a decode step measured without the profiler; None leaves the GPU's idle share open."""
    gpu: str | None = None
    """Name of the GPU, used where the trace does not have it."""


def account(request: TraceRequest, progress: Progress = SILENT) -> TraceSummary:
    """What `stepline trace` answers: the summary of traces that hold GPU work.

    Raises:
        UsageError: for a context or step that cannot be.
        UnreadableEvidence: where a path is no trace.
        Inconclusive: where the traces hold no GPU work.
    """
    if request.context_length is not None and request.context_length < 1:
        raise UsageError(f"--context-length {request.context_length}: a context has at least one token")
    if request.step_ms is not None and request.step_ms <= 0:
        raise UsageError(f"--step-ms {request.step_ms}: a step takes more than no time")
    summary = summarise(request, progress)
    if not any(rank.gpu_events for rank in summary.ranks):
        doubts = [doubt for rank in summary.ranks for doubt in rank.doubts]
        cut = next((doubt.text for doubt in doubts if doubt.topic == "truncated"), None)
        way_out = "record them with CUDA activities" if cut is None else f"{cut}; copy it again"
        raise Inconclusive(f"the traces hold no GPU work: {way_out}")
    return summary


def summarise(request: TraceRequest, progress: Progress = SILENT) -> TraceSummary:
    """The summary of all traces found in the paths.

    Raises:
        UnreadableEvidence: where a path is no trace.
    """
    from stepline.sources.readers import traces  # noqa: PLC0415

    files = traces.find(list(request.paths))
    jobs = [(file, request.context_length, request.step_ms) for file in files]
    parts: list[tuple[RankTrace, Arrivals]] = []
    try:
        for number, found in enumerate(_each(jobs, progress), 1):
            parts += found
            progress.traces(number, len(files))
    finally:
        progress.end()
    from stepline.model.trace import join  # noqa: PLC0415 - numpy, imported beside a second process' start

    return with_gpu(join(parts, context_tokens=request.context_length), request.gpu)


def with_gpu(summary: TraceSummary, gpu: str | None) -> TraceSummary:
    """The summary with the GPU named where its trace does not name it."""
    return msgspec.structs.replace(summary, ranks=tuple(_on(rank, gpu) for rank in summary.ranks))


def _on(rank: RankTrace, gpu: str | None) -> RankTrace:
    if gpu is None or rank.device is None or rank.device.name:
        return rank
    return msgspec.structs.replace(rank, device=msgspec.structs.replace(rank.device, name=gpu))


Job = tuple[Path, int | None, float | None]
"""A file, the configured context in tokens, and the unprofiled step in ms."""


def _each(jobs: list[Job], progress: Progress) -> Iterator[list[tuple[RankTrace, "Arrivals"]]]:
    """Condense file by file; in processes of their own where that is worth starting them."""
    workers = min(len(jobs), os.cpu_count() or 1)
    if workers > 1 and sum(file.stat().st_size for file, _, _ in jobs) > 2 * PARALLEL_FROM_BYTES:
        from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415
        from multiprocessing import get_context  # noqa: PLC0415

        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            yield from pool.map(condense, jobs)
    else:
        for job in jobs:
            yield condense(job, progress, processes=os.cpu_count() or 1)


def condense(
    job: Job, progress: Progress = SILENT, *, processes: int = 1
) -> list[tuple[RankTrace, "Arrivals"]]:
    """One file to the summaries of its processes."""
    collecting = gc.isenabled()
    gc.disable()  # events are acyclic; the collector would scan them for nothing
    try:
        return _condensed(job, progress, processes=processes)
    finally:
        if collecting:
            gc.enable()


def _condensed(job: Job, progress: Progress, *, processes: int) -> list[tuple[RankTrace, "Arrivals"]]:
    from stepline.sources.readers import traces  # noqa: PLC0415

    path, context_tokens, step_ms = job
    raws = traces.read(path, lambda done: progress.trace_bytes(path.name, done), processes=processes)
    from stepline.model.trace import rank  # noqa: PLC0415

    return [rank(raw, context_tokens=context_tokens, unprofiled_step_ms=step_ms) for raw in raws]
