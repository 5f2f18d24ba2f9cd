"""Two sides, each one run or repeats of it, to a verdict."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from stepline.errors import UsageError
from stepline.evidence.evidence import Evidence
from stepline.evidence.run import Run
from stepline.findings.compare import compare
from stepline.findings.comparison import Comparison
from stepline.findings.several import arms_of
from stepline.model.picture.picture import Picture
from stepline.sources.address import is_url
from stepline.tasks.picture import pictures_of
from stepline.tasks.progress import SILENT, Progress
from stepline.tasks.setup import UNTOLD, SetupRequest, check

MAX_EFFECT_PERCENT = 50.0
Side = str | Evidence | Run
"""One run: its path, or what was read from it."""


class CompareRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared, and which change counts as one."""

    before: tuple[Side, ...]
    """Runs: each was read already, or is a file, or a folder of one run or of repeats."""
    after: tuple[Side, ...]
    """Empty where `before` is a folder of runs under two configurations."""
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
    before, after = list(request.before), list(request.after)
    for path in (*before, *after):
        if isinstance(path, str) and is_url(path):
            raise UsageError(f"{path}: compare reads recordings; make one with stepline record {path} -o DIR")
    both = _places(before) & _places(after)
    if both:
        raise UsageError(f"{min(both)}: is on both sides; give two recordings")

    def pictures(side: list[Side]) -> list[Picture]:
        return [picture for path in side for picture in pictures_of(path, request.setup, progress)]

    if before and not after:
        return compare(*two_arms(pictures(before)), effect / 100)
    return compare(pictures(before), pictures(after), effect / 100)


def two_arms(pictures: Sequence[Picture]) -> tuple[Sequence[Picture], Sequence[Picture]]:
    """The two arms that runs of one folder are, in order of time or of the setting's value.

    Raises:
        UsageError: when they are one arm, or more than two.
    """
    arms = arms_of(pictures)
    if len(arms) != 2:
        told = "; ".join(", ".join(picture.run.id for picture in arm) for arm in arms[:6])
        if len(arms) == 1:
            raise UsageError(f"1 configuration given ({told}): BEFORE and AFTER are one each")
        raise UsageError(
            f"these runs are of {len(arms)} configurations ({told}), and two are compared: give BEFORE AFTER, or see "
            "all with stepline diagnose"
        )
    return arms[0], arms[1]


def side_of(runs: Side | Path | Iterable[Side | Path]) -> tuple[Side, ...]:
    """One run, or repeats of it, as a side."""
    several = (runs,) if isinstance(runs, str | Path | Evidence | Run) else tuple(runs)
    return tuple(str(run) if isinstance(run, Path) else run for run in several)


def _places(side: list[Side]) -> set[Path]:
    return {Path(run).resolve() for run in side if isinstance(run, str)}
