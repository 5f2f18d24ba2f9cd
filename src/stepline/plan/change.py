"""Which one setting to change to prove the first finding, and at which levels to measure with and without it."""

import msgspec

from stepline.findings.diagnosis import RunDiagnosis
from stepline.findings.registry import find_rule
from stepline.model.picture.picture import Picture
from stepline.plan.experiment import Experiment
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    warm_up = Threshold(
        1.25,
        "times a level's time",
        why="What a fresh server's first requests add to it.",
    )
    arms = Threshold(
        3,
        "arms",
        why="Measured beside the first, which is the server as it was found: changed, changed, and "
        "as it was.",
        source="the design A B B A",
    )


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of `ServerFacts`, the number to try, and the rule that asks for it."""

    code: str
    setting: str
    value: int


def change_for(picture: Picture, diagnosis: RunDiagnosis) -> Change | None:
    """The change that the first finding with a setting of its own asks for; None where none has one."""
    for finding in diagnosis.findings:
        ask = find_rule(finding.code).change
        asked = None if ask is None else ask(picture)
        if asked is not None:
            return Change(code=finding.code, setting=asked.setting, value=asked.value)
    return None


def arm_levels(done: tuple[Experiment, ...], left_s: float) -> tuple[Experiment, ...]:
    """The levels to drive alike in every arm: the heaviest, and as many others from the lightest on as there is time.

    Each as it was last driven at the load's own context; none where not even one fits.
    """
    first = next((step.input_tokens for step in done if step.kind == "level"), None)
    last = {step.concurrency: step for step in done if step.kind == "level" and step.input_tokens == first}
    ordered = [last[streams] for streams in sorted(last)]
    chosen: list[Experiment] = []
    for step in [*ordered[-1:], *ordered[:-1]]:
        cost_s = T.arms * T.warm_up * step.seconds
        if cost_s <= left_s:
            chosen.append(step)
            left_s -= cost_s
        elif step is ordered[-1]:
            return ()
    return tuple(sorted(chosen, key=lambda step: step.concurrency))
