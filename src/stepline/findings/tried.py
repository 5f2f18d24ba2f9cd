"""What levers already pulled say about a cause: in vain it is ruled out, with effect it is confirmed.

An A/B on the same server is the strongest evidence there is. It needs a lever that acts on one cause alone; one that
acts on several (a whole new build, another engine) says nothing about which.
"""

from stepline import units
from stepline.evidence.load import LeverTrial
from stepline.findings.outcome import Clear, Fired, Observation, Outcome, Proof, Rule, RuledOut
from stepline.model.change.gain import Gain
from stepline.model.measure.levers import decisive_trials, lever_verdicts, move_in
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture


def with_trials(rule: Rule, answer: Outcome, picture: Picture) -> Outcome:
    """The rule's answer in the light of the levers tried."""
    effective = _effective(rule, picture)
    if effective is not None:
        return _confirmed(effective, answer)
    if isinstance(answer, Fired) and answer.status == "suspected":
        for verdict in lever_verdicts(picture.run):
            if rule.code in verdict.causes:
                return Clear(f"ruled out by a lever tried: {verdict.by}; it acts on {verdict.acts_on}")
    return answer


def _effective(rule: Rule, picture: Picture) -> LeverTrial | None:
    """The decisive trial whose lever acts on this cause alone and that changed the rate by it."""
    for trial in decisive_trials(picture.run):
        move = move_in(trial)
        if move is not None and move.bound(trial.speedup, SHARED.worth) == (rule.code,):
            return trial
    return None


def _confirmed(trial: LeverTrial, answer: Outcome) -> Fired:
    move = move_in(trial)
    acts_on = "" if move is None else move.acts_on
    worse = trial.speedup < 1
    batch = trial.running or trial.concurrency
    at = "" if batch is None else f" at {batch:g}"
    slow, fast = (trial.after, trial.before) if worse else (trial.before, trial.after)
    gain = None
    if trial.measure == "tok_s":
        gain = Gain(
            tok_s=fast, low=fast, high=fast, binds_next="not known: the trial was measured, not modelled"
        )
    before, after = (f"{units.fmt(value)} {_UNITS[trial.measure]}" for value in (trial.before, trial.after))
    measured = Observation(f"{trial.lever}: {before} before, {after} after{at}", trial.origin)
    known = answer if isinstance(answer, Fired) else None
    change = f"{units.times(1 / trial.speedup)} slower" if worse else f"{units.times(trial.speedup)} faster"
    return Fired(
        status="confirmed",
        headline=f"{trial.lever} made the server {change}: it acts on {acts_on}",
        evidence=(measured, *(known.evidence if known else ())),
        recoverable_tok_s=fast - slow if trial.measure == "tok_s" else None,
        gain=gain,
        ruled_out=(
            RuledOut("every other cause of that difference", "both arms ran the same load"),
            *(known.ruled_out if known else ()),
        ),
        tries=known.tries if known else (),
        proof=known.proof
        if known
        else Proof("stepline compare BEFORE AFTER, the two arms recorded again", 60.0),
    )


_UNITS = {"tok_s": "tok/s", "ms": "ms"}
