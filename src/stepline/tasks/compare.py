"""Two sides, each one run or repeats of it, to a verdict."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from stepline.errors import UsageError
from stepline.evidence.evidence import Evidence
from stepline.evidence.run import Run
from stepline.findings.compare import compare
from stepline.findings.comparison import Comparison
from stepline.model.picture.picture import Picture
from stepline.sources.address import is_url
from stepline.tasks.picture import picture_of
from stepline.tasks.progress import SILENT, Progress
from stepline.tasks.setup import UNTOLD, SetupRequest, check

MAX_EFFECT_PERCENT = 50.0
Side = str | Evidence | Run
"""One run: its path, or what was read from it."""


class CompareRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared, and which change counts as one."""

    before: tuple[Side, ...]
    """Runs: each was read already, or is a file, a folder of evidence, or a folder of nothing but runs."""
    after: tuple[Side, ...]
    effect_percent: float = 3.0
    """Change that counts as none, and that repeats are asked for to see."""
    setup: SetupRequest = UNTOLD


def compare_runs(request: CompareRequest, progress: Progress = SILENT) -> Comparison:
    """The verdict on a change.

    Raises:
        UsageError: when a side names no recording, both name the same, or the effect is no share of change.
        UnreadableEvidence: when a run holds nothing readable.
    """
    effect = request.effect_percent
    if not 0 < effect <= MAX_EFFECT_PERCENT:
        raise UsageError(f"--effect {effect:g}: give a percentage above 0 and up to {MAX_EFFECT_PERCENT:g}")
    check(request.setup, progress)
    before, after = (
        [run for path in side for run in runs_in(path)] for side in (request.before, request.after)
    )
    for path in (*before, *after):
        if isinstance(path, str) and is_url(path):
            raise UsageError(f"{path}: compare reads recordings; make one with stepline record {path} -o DIR")
    both = _places(before) & _places(after)
    if both:
        raise UsageError(f"{min(both)}: is on both sides; give two recordings")

    def pictures(side: list[Side]) -> list[Picture]:
        return [picture_of(path, request.setup, progress) for path in side]

    return compare(pictures(before), pictures(after), effect / 100)


def side_of(runs: Side | Path | Iterable[Side | Path]) -> tuple[Side, ...]:
    """One run, or repeats of it, as a side."""
    several = (runs,) if isinstance(runs, str | Path | Evidence | Run) else tuple(runs)
    return tuple(str(run) if isinstance(run, Path) else run for run in several)


def _places(side: list[Side]) -> set[Path]:
    return {Path(run).resolve() for run in side if isinstance(run, str)}


def runs_in(path: Side) -> list[Side]:
    """The runs of a path: its folders where it holds nothing but folders, in order of name, else the path itself."""
    if not isinstance(path, str):
        return [path]
    root = Path(path)
    inside = (
        sorted(child for child in root.iterdir() if not child.name.startswith(".")) if root.is_dir() else []
    )
    if inside and all(child.is_dir() for child in inside):
        return [str(child) for child in inside]
    return [path]
