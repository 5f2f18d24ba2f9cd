"""Where steps begin: annotations, else graph launches, else repetition of the kernels themselves."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from stepline.evidence.trace import StepKind
from stepline.evidence.trace_arrays import Column
from stepline.facts import kernels
from stepline.model.trace.work import Work
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    rows = Threshold(30, "pieces of GPU work", why="Fewer hold no step that repeats.")
    times = Threshold(
        3, "occurrences", why="What a kernel that marks steps needs, so that its distance can be regular."
    )
    distance = Threshold(5, "launches", why="A shorter distance is a repetition inside a layer, not a step.")
    regular = Threshold(0.7, "share of the distances", why="That are alike where a kernel marks steps.")


FoundBy = Literal["annotation", "graph launch", "repetition"]


@dataclass(frozen=True)
class Start:
    """Where a step begins on the host's clock."""

    at_ns: int
    kind: StepKind
    batch: int | None = None
    tokens: int | None = None


@dataclass(frozen=True)
class Segmentation:
    """Step starts in order and, per GPU row, the step it belongs to (−1: before the first)."""

    found_by: FoundBy
    starts: list[Start]
    step: Column


def segment(work: Work) -> Segmentation | None:
    """Find the steps of one device, None where nothing repeats."""
    for found_by, find in (
        ("annotation", _annotated),
        ("graph launch", _launched),
        ("repetition", _repeated),
    ):
        if starts := find(work):
            at = np.array([start.at_ns for start in starts])
            step = np.searchsorted(at, work.launched_ns, "right") - 1
            return Segmentation(found_by, starts, step)  # type: ignore[arg-type]
    return None


def _annotated(work: Work) -> list[Start]:
    """Outermost step annotations; a schedule's plain counters only where no engine names its steps."""
    marks, strings = work.raw.marks, work.raw.strings
    known = {index: kernels.step(strings[index]) for index in np.unique(marks.name).tolist()}
    engine = {
        index for index, said in known.items() if said and not strings[index].startswith("ProfilerStep")
    }
    wanted = engine or {index for index, said in known.items() if said}
    starts: list[Start] = []
    reach = -1
    for name, begin, end in zip(
        marks.name.tolist(), marks.start_ns.tolist(), marks.end_ns.tolist(), strict=True
    ):
        said = known.get(name)
        if name not in wanted or said is None:
            continue
        if begin >= reach:
            starts.append(Start(begin, said.kind, said.batch, said.tokens))
            reach = end
        elif starts and starts[-1].batch is None:
            starts[-1] = Start(starts[-1].at_ns, said.kind, said.batch, said.tokens)
    return starts


def _launched(work: Work) -> list[Start]:
    """Graph launches.

    Several a step where the sequence of their kernel counts repeats with a longer period.
    """
    rows = np.flatnonzero(work.graph & (work.call >= 0))
    if not len(rows):
        return []
    calls, counts = np.unique(work.call[rows], return_counts=True)
    period = next((p for p in range(1, len(counts) // 2 + 1) if (counts[p:] == counts[:-p]).all()), 1)
    names = work.raw.strings
    first = rows[np.isin(work.call[rows], calls[:period])]
    kind = kernels.phase({names[index] for index in np.unique(work.raw.gpu.name[first]).tolist()})
    return [Start(int(work.raw.calls.start_ns[call]), kind) for call in calls[::period].tolist()]


def _repeated(work: Work) -> list[Start]:
    """The kernel that recurs at the most constant distance, least often, after the longest pause.

    Needs three occurrences, the same distance (in launches) for 7 in 10, and half of all rows covered.
    """
    order = np.argsort(work.launched_ns, kind="stable")
    names, launched = work.raw.gpu.name[order], work.launched_ns[order]
    if len(names) < T.rows:
        return []
    by_name = np.argsort(names, kind="stable")
    unique, first, counts = np.unique(names[by_name], return_index=True, return_counts=True)
    pause = np.diff(launched, prepend=launched[:1])
    best: tuple[int, float, Column] | None = None
    for begin, count in zip(
        first[counts >= T.times].tolist(), counts[counts >= T.times].tolist(), strict=True
    ):
        at = np.sort(by_name[begin : begin + count])
        distance = np.diff(at)
        usual = int(np.median(distance))
        regular = float((distance == usual).mean())
        if usual < T.distance or regular < T.regular or (at[-1] - at[0]) < len(names) / 2:
            continue
        rank = (count, -float(np.median(pause[at[1:]])), at)
        if best is None or rank[:2] < best[:2]:
            best = rank
    if best is None:
        return []
    strings = work.raw.strings
    kind = kernels.phase({strings[index] for index in unique.tolist()})
    return [Start(int(launched[index]), kind) for index in best[2].tolist()]
