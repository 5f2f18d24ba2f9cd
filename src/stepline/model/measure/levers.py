"""Levers already tried are evidence: what changed nothing did not bind."""

import math

import msgspec

from stepline.evidence.load import LeverTrial
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.facts.settings.move import Move, move_of
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
    """Every lever tried whose cure, whichever arm has it, gained nothing where it counts."""
    verdicts = []
    for trial in decisive_trials(run):
        move = move_in(trial)
        causes = () if move is None else move.did_not_bind(trial.speedup, T.no_change)
        same = max(trial.speedup, 1 / trial.speedup) - 1 <= T.no_change
        if move is None or not (causes or same):
            continue
        change = trial.speedup - 1
        at = f" at {_batch(trial):g}" if _batch(trial) else ""
        verdicts.append(
            LeverVerdict(
                lever=trial.lever,
                acts_on=move.acts_on,
                causes=causes,
                by=f"{trial.lever} changed the rate by {100 * change:+.0f} %{at}",
                origin=trial.origin,
            )
        )
    return tuple(verdicts)


def move_in(trial: LeverTrial) -> Move | None:
    """What is known of the change; which of two servers was measured first says nothing."""
    name, equals, after = trial.lever.partition("=")
    if not equals:
        return move_of(trial.lever, trial.value_before, None if trial.value_before is None else "on")
    return move_of(name, trial.value_before, after)


def _effect(trial: LeverTrial) -> float:
    return abs(math.log(trial.speedup))


def _batch(trial: LeverTrial) -> float:
    return trial.running or trial.concurrency or 0.0
