"""What a rule answers: fired, clear, or cannot tell. Nothing else exists, and silence is none of them."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import msgspec

from stepline.evidence.origin import Origin
from stepline.model.change.gain import Gain
from stepline.model.picture.picture import Picture

Status = Literal["confirmed", "suspected"]


class Observation(msgspec.Struct, frozen=True):
    """One number that decided, with where it was read."""

    text: str
    origin: Origin | None = None


class RuledOut(msgspec.Struct, frozen=True):
    """A rival cause and the observation that rules it out."""

    rival: str
    """The other explanation."""
    by: str
    """The observation that rules it out."""


class Rival(msgspec.Struct, frozen=True):
    """A cause that fits the same evidence, and what would decide between the two."""

    rival: str
    """The other explanation."""
    decided_by: str
    """What would decide."""


class Try(msgspec.Struct, frozen=True):
    """A reversible next step, with what it costs and what else it changes."""

    action: str
    """What to do."""
    cost: str
    """What it costs and risks."""


class Proof(msgspec.Struct, frozen=True):
    """The command that would prove it, and the server seconds it takes."""

    command: str
    """The command that proves it."""
    cost_s: float | None = None
    """Server time that takes."""


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


class SettingChange(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of `ServerFacts`, and the number that takes the cause away."""

    setting: str
    value: int


class Foretold(NamedTuple):
    """A quantity that BEFORE tells of AFTER besides the rate, and what AFTER measured; None where it measured none."""

    measure: str
    unit: Literal["ms", "tok/s"]
    predicted: float
    measured: float | None


class Rule(NamedTuple):
    """One cause, and all that others ask of it. What no rule but a few have is None or False for the rest."""

    code: str
    codename: str
    """The words of the catalogue."""
    since: str
    """The release that brought it."""
    check: Callable[[Picture], Outcome]
    proven: bool = True
    """False while no real positive and no real look-alike stand behind the rule: then it makes notes only."""
    change: Callable[[Picture], SettingChange | None] | None = None
    """The one setting that proves the cause by its going; None where no single number does."""
    grows_with_request: bool = False
    """True where the cost follows the length of requests, or what bounds it: another context decides."""
    foretell: Callable[[Picture, Picture], Foretold | None] | None = None
    """From the pictures before and after the cause was removed (`stepline compare`); the gain is told without it."""
    hides_changes: bool = False
    """While it holds, a change of the server would not show in the rate."""
    general: bool = False
    """True of a part's excess as such: a specific finding that explains half of it takes its place."""


def recovered(rate_tok_s: float | None, gain: Gain | None) -> float | None:
    """What a gain adds to the present rate; None when either is unknown."""
    return None if rate_tok_s is None or gain is None else max(0.0, gain.tok_s - rate_tok_s)
