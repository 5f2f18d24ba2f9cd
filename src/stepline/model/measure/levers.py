"""Levers already tried are evidence: what changed nothing did not bind."""

import math

import msgspec

from stepline.evidence.load import LeverTrial
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.facts.levers import Lever, find_lever, toward_cure
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    no_change = Threshold(
        0.03,
        "gain",
        why="Less counts as none.",
        source="repeated levels of one H200 server differ by up to 2 %",
    )


class LeverVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A lever that changed nothing: what it acts on, and so the causes (rule codes) that did not bind."""

    lever: str
    acts_on: str
    causes: tuple[str, ...]
    by: str
    origin: Origin


def decisive_trials(run: Run) -> tuple[LeverTrial, ...]:
    """For each lever the trial at the largest batch; of several there, the one with the largest effect.

    A lever that helps at 1 and not at 16 removed a cost that does not bind at 16.
    """
    decisive: dict[str, LeverTrial] = {}
    for trial in run.levers:
        known = decisive.get(trial.lever)
        if known is None or (_batch(trial), _effect(trial)) > (_batch(known), _effect(known)):
            decisive[trial.lever] = trial
    return tuple(decisive.values())


def lever_verdicts(run: Run) -> tuple[LeverVerdict, ...]:
    """Every tried lever that gained nothing where it counts."""
    verdicts = []
    for trial in decisive_trials(run):
        lever = lever_of(trial)
        if lever is None or cured(trial, lever) - 1 > T.no_change:
            continue
        change = trial.speedup - 1
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


def lever_of(trial: LeverTrial) -> Lever | None:
    """What is known of the setting that was changed."""
    return find_lever(trial.lever, trial.value_before)


def cured(trial: LeverTrial, lever: Lever) -> float:
    """How much faster the way that removes the lever's causes made the server.

    Which of two servers was measured first says nothing, so a cap lowered at a loss is a cap raised at a gain; a cap
    lowered at a gain speaks against it. Of two alternatives the slower one has the cause.
    """
    way = toward_cure(lever, trial.lever, trial.value_before)
    if way == 0 and lever.cure == "either":
        return max(trial.speedup, 1 / trial.speedup)
    return 1.0 if way == 0 else trial.speedup**way


def _effect(trial: LeverTrial) -> float:
    return abs(math.log(trial.speedup))


def _batch(trial: LeverTrial) -> float:
    return trial.running or trial.concurrency or 0.0
