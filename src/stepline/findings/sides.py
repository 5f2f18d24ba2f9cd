"""One side of a comparison: its runs as pictures, and the diagnosis of the run that says most."""

from collections.abc import Sequence

import msgspec

from stepline.errors import UsageError
from stepline.findings.comparison import CauseView, RunView, SideView
from stepline.findings.diagnose import diagnose
from stepline.findings.diagnosis import RunDiagnosis
from stepline.findings.knobs import changed_knobs
from stepline.model.picture.picture import Picture


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """Repeats of one server under one load."""

    pictures: tuple[Picture, ...]
    chief: Picture
    """The run with a trace, else the first: what is said of the side beyond its rates is said of it."""
    diagnosis: RunDiagnosis


def make_side(pictures: Sequence[Picture], name: str) -> Side:
    """Put the runs of a side together.

    Raises:
        UsageError: when its runs are known to differ in a setting.
    """
    answers = [diagnose(picture) for picture in pictures]
    for answer in answers[1:]:
        for change in changed_knobs(answers[0].target, answer.target):
            if change.before is not None and change.after is not None:
                raise UsageError(
                    f"the runs of one side must be repeats: {name} has {change.name} {change.before} and {change.after}"
                )
    chief = next((at for at, picture in enumerate(pictures) if picture.traced is not None), 0)
    return Side(pictures=tuple(pictures), chief=pictures[chief], diagnosis=answers[chief])


def side_view(side: Side) -> SideView:
    """The side as a record."""
    return SideView(
        target=side.diagnosis.target,
        runs=tuple(
            RunView(read=tuple(file.path for file in one.run.files if file.kind), started_s=started(one))
            for one in side.pictures
        ),
        verdict=side.diagnosis.verdict,
        findings=tuple(
            CauseView(code=finding.code, name=finding.name, status=finding.status, headline=finding.headline)
            for finding in side.diagnosis.findings
        ),
    )


def started(picture: Picture) -> float | None:
    """When a run began by its log, else by its client; None where neither has a clock."""
    lines = [report.time_s for report in picture.run.decodes if report.time_s is not None]
    levels = [level.start_s for level in picture.run.levels if level.start_s is not None]
    return min(lines or levels, default=None)


def order_in_time(before: Side, after: Side) -> str | None:
    """The runs in order of time, A before and B after; None where a run has no clock or the clocks are two kinds."""
    runs = [(picture, "A") for picture in before.pictures] + [(picture, "B") for picture in after.pictures]
    times = [started(picture) for picture, _ in runs]
    kinds = {any(report.time_s is not None for report in picture.run.decodes) for picture, _ in runs}
    if len(kinds) > 1:
        return None
    known = [(time, letter) for time, (_, letter) in zip(times, runs, strict=True) if time is not None]
    return "".join(letter for _, letter in sorted(known)) if len(known) == len(runs) else None
