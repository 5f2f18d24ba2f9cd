"""The list of candidates: settings in force that are not the default, or that the engine itself changed.

It names no cause: a cause needs time that the accounting found. It holds the words for what to change.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from stepline.evidence.run import Run
from stepline.evidence.setting import SettingSaid
from stepline.facts.settings import Judgement, Unknown, catalogue
from stepline.facts.settings.direction import Direction, direction
from stepline.model.settings.conditions import holds
from stepline.model.settings.in_force import InForce, Settings, same


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One setting that may cost time, with what it acts on and the way back."""

    setting: InForce
    judgement: Judgement
    moved: Direction | None
    """How it stands from the default or from what was asked: raise, lower, on, off, set; None where unknown."""
    costs: tuple[str, ...]
    """Rule codes of the causes that this move brings about; all that it acts on where the move is unknown."""
    chosen: bool | None
    """True where somebody or the engine's own words moved it; None where its value may be what the engine fills in."""
    certain: bool
    """False where nothing tells whether the setting can matter to this server."""

    @property
    def way_back(self) -> Direction | None:
        """How to move it to take those causes away."""
        return next(
            (way for way, causes in self.judgement.relieves.items() if set(causes) & set(self.costs)), None
        )


def audit(run: Run, said: Iterable[SettingSaid]) -> tuple[Candidate, ...]:
    """Every candidate, those that the engine changed first; nothing where the engine is not known."""
    server = run.server
    if server.engine is None:
        return ()
    try:
        known = catalogue(server.engine.value)
    except KeyError:
        return ()
    settings = Settings(known.engine, None if server.version is None else server.version.value, said)
    found = [candidate for each in settings.spoken() if (candidate := _candidate(each, run, settings))]
    return tuple(sorted(found, key=_order))


def _order(candidate: Candidate) -> tuple[bool, bool, bool, str]:
    """What the engine changed, what somebody chose, what may be the engine's own choice."""
    setting = candidate.setting
    return setting.changed is None, candidate.chosen is None, not candidate.certain, setting.name


def _candidate(setting: InForce, run: Run, settings: Settings) -> Candidate | None:
    judgement = catalogue(setting.engine).judgements.get(setting.name)
    chosen = _chosen(setting)
    if judgement is None or chosen is False or judgement.cost.startswith(THE_TASK):
        return None
    matters = holds(judgement.when, run, settings)
    if matters is False:
        return None
    base = setting.asked if setting.changed is not None and setting.asked is not None else setting.default
    moved = _moved(judgement, base, setting.value)
    costs = _costs(judgement, moved)
    if not costs:
        return None
    return Candidate(
        setting=setting, judgement=judgement, moved=moved, costs=costs, chosen=chosen, certain=matters is True
    )


def _moved(judgement: Judgement, base: Any, value: Any) -> Direction | None:
    """The direction in the judgement's own words: a number where there was none has no known way."""
    moved = direction(base, value)
    if moved in ("on", "off") and not {"on", "off"} & set(judgement.relieves):
        return "set" if isinstance(value if moved == "on" else base, str) else None
    return moved


def _chosen(setting: InForce) -> bool | None:
    """True where somebody moved it: the engine by its own words, or who started it away from the default.

    False where it stands as the release has it. None where the default is one that the engine fills in (None, auto):
    what `/server_info` and the start-up dump show there may be the engine's choice or somebody's.
    """
    if setting.changed is not None:
        return not (setting.known and same(setting.value, setting.default))
    if not setting.known:
        return False
    by_starter = any(word.by in ("command", "environment") for word in setting.said)
    if isinstance(setting.default, Unknown):
        return True if by_starter else None
    if setting.default is not None and setting.default != "auto":
        return not same(setting.value, setting.default)
    if setting.value in UNSET:
        return False
    filled_in = catalogue(setting.engine).settings[setting.name].resolved
    return True if by_starter or not filled_in else None


THE_TASK = "another checkpoint"
"""Costs of what is served itself: every server has a model that is not the default, and none is a candidate for it."""
UNSET: tuple[Any, ...] = (None, "auto", False, "", [], {})
"""Values that say no more than that nobody chose."""


def _costs(judgement: Judgement, moved: Direction | None) -> tuple[str, ...]:
    """Causes that a move brings about. A move of unknown way, or to another choice, may bring each that it acts on."""
    everything = tuple(dict.fromkeys(code for codes in judgement.relieves.values() for code in codes))
    brings = judgement.brings
    if moved is None or moved == "set":
        return everything
    if moved in brings:
        return brings[moved]
    return brings.get("set", ())
