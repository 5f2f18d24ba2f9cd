"""Levers already tried are evidence: what changed nothing did not bind."""

import msgspec

from stepline.evidence.load import LeverTrial
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.facts.levers import find_lever

NO_CHANGE = 0.03
"""A gain within 3 % counts as none: repeated levels of one server differ by up to 2 %."""


class LeverVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A lever that changed nothing: what it acts on, and so the causes (rule codes) that did not bind."""

    lever: str
    acts_on: str
    causes: tuple[str, ...]
    by: str
    origin: Origin


def lever_verdicts(run: Run) -> tuple[LeverVerdict, ...]:
    """Every tried lever that gained nothing at the largest batch it was tried at.

    One that helps at 1 and not at 16 removed a cost that does not bind at 16.
    """
    largest: dict[str, LeverTrial] = {}
    for trial in run.levers:
        known = largest.get(trial.lever)
        if known is None or _batch(trial) > _batch(known):
            largest[trial.lever] = trial
    verdicts = []
    for trial in largest.values():
        lever = find_lever(trial.lever)
        change = trial.speedup - 1
        if lever is None or change > NO_CHANGE:
            continue
        at = f" at {_batch(trial):g}" if _batch(trial) else ""
        verdicts.append(
            LeverVerdict(
                lever=trial.lever,
                acts_on=lever.acts_on,
                causes=lever.causes,
                by=f"{trial.lever} changed the rate by {100 * change:+.0f} %{at}",
                origin=trial.origin,
            )
        )
    return tuple(verdicts)


def _batch(trial: LeverTrial) -> float:
    return trial.running or trial.concurrency or 0.0
