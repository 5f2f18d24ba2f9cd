"""What a rule answers: fired, clear, or cannot tell. Nothing else exists, and silence is none of them."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import msgspec

from stepline.evidence.origin import Origin
from stepline.model.picture.picture import Picture

Status = Literal["confirmed", "suspected"]


class Observation(msgspec.Struct, frozen=True):
    """One number that decided, with where it was read."""

    text: str
    origin: Origin | None = None


class RuledOut(msgspec.Struct, frozen=True):
    """A rival cause and the observation that rules it out."""

    rival: str
    by: str


class Rival(msgspec.Struct, frozen=True):
    """A cause that fits the same evidence, and what would decide between the two."""

    rival: str
    decided_by: str


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """The closed-loop rate after the cause is removed, with its interval and what limits then."""

    tok_s: float
    low: float
    high: float
    binds_next: str


class Try(msgspec.Struct, frozen=True):
    """A reversible next step, with what it costs and what else it changes."""

    action: str
    cost: str


class Proof(msgspec.Struct, frozen=True):
    """The command that would prove it, and the server seconds it takes."""

    command: str
    cost_s: float | None = None


class Fired(msgspec.Struct, frozen=True, kw_only=True):
    """The rule recognises its cause."""

    status: Status
    headline: str
    evidence: tuple[Observation, ...]
    recoverable_tok_s: float | None = None
    """None when the cause costs no decode rate (a measurement at fault) or nothing tells how much."""
    gain: Gain | None = None
    ruled_out: tuple[RuledOut, ...] = ()
    rivals: tuple[Rival, ...] = ()
    tries: tuple[Try, ...] = ()
    proof: Proof | None = None


class Clear(msgspec.Struct, frozen=True):
    """The evidence speaks against the cause."""

    reason: str


class CannotTell(msgspec.Struct, frozen=True):
    """The evidence is missing; what is needed and the command that gets it."""

    needs: str
    command: str


Outcome = Fired | Clear | CannotTell


class Rule(NamedTuple):
    """One cause. `codename` is the words of the catalogue; `since` the release that brought it.

    `proven` is False while no real positive and no real look-alike stand behind the rule: then it makes notes only.
    """

    code: str
    codename: str
    since: str
    check: Callable[[Picture], Outcome]
    proven: bool = True


def recovered(rate_tok_s: float | None, gain: Gain | None) -> float | None:
    """What a gain adds to the present rate; None when either is unknown."""
    return None if rate_tok_s is None or gain is None else max(0.0, gain.tok_s - rate_tok_s)
