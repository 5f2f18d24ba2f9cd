"""What a setting that was changed takes away and brings about, by the catalogue of every engine, else by its words."""

import functools
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stepline.facts.levers import Lever, find_lever, toward_cure
from stepline.facts.settings.catalogue import COMMON, ENGINES, catalogue
from stepline.facts.settings.direction import direction
from stepline.facts.settings.records import OPPOSITE, Judgement, Setting, Unknown


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a setting; rule codes of what it takes away, of what it brings, of what one of two choices has."""

    acts_on: str
    relieved: tuple[str, ...] = ()
    brought: tuple[str, ...] = ()
    either: tuple[str, ...] = ()
    """Two choices without an order: the slower one has the cause."""

    @property
    def causes(self) -> tuple[str, ...]:
        """Every cause that it says anything of."""
        return tuple(dict.fromkeys((*self.relieved, *self.brought, *self.either)))

    @property
    def back(self) -> "Move":
        """The same change undone."""
        return msgspec.structs.replace(self, relieved=self.brought, brought=self.relieved)

    def bound(self, speedup: float, worth: float) -> tuple[str, ...]:
        """Causes that an effect of at least `worth` (a share) may have shown; one alone is proof."""
        if abs(math.log(speedup)) < math.log(1 + worth):
            return ()
        return (*(self.relieved if speedup > 1 else self.brought), *self.either)

    def did_not_bind(self, speedup: float, none: float) -> tuple[str, ...]:
        """Causes whose removal gained no more than `none` (a share), whichever arm stands first."""
        codes: tuple[str, ...] = ()
        if self.acts_on.endswith(ONE_KERNEL):
            return codes
        if speedup - 1 <= none:
            codes += self.relieved
        if 1 / speedup - 1 <= none:
            codes += self.brought
        if max(speedup, 1 / speedup) - 1 <= none:
            codes += self.either
        return codes


SEVERAL = Move(acts_on="several settings at once, so the effect is of none alone")
ONE_KERNEL = " kernel"
"""Mechanisms of one kernel family: another kernel in vain says nothing of the rest."""
FASTER_ANYWAY = ("number format", "parallel layout")
"""Fewer bytes and more GPUs make any server faster, so that gain shows no fault."""
FEATURES = {"speculation": "S205", "structured output": "H305", "placement": "H307", "disaggregation": "C504"}
"""What costs only while it is used, with its own cause: turned on it can bring that, and does not lack its tuning."""
_UNUSED = (None, False, 0, 0.0, "", "off", "none", "None")
_ABSENT = re.compile(
    r"^(?:|default|baseline|base|stock|original|unset|not set|none|without|auto)$", re.IGNORECASE
)
_SPELLED = re.compile(
    r"(?P<name>--[A-Za-z][\w.-]+|[A-Za-z]\w*_\w+)(?:(?:\s*=\s*|\s+)(?P<value>[^\s,;+=-][^\s,;+]*))?"
)
ASSIGNED = re.compile(r"([A-Za-z-][\w.-]*)\s*=\s*([\w.+-]+)")
_TRUTHS = {"true": True, "on": True, "yes": True, "enabled": True}
_TRUTHS |= {"false": False, "off": False, "no": False, "disabled": False}


def move_of(name: str, before: str | None, after: str | None) -> Move | None:
    """What is known of a setting that went from one value to another; None where nobody knows it.

    Args:
        name: of the setting, or of a column whose values name the arms.
        before: None where it was not set, or where only the change is named.
        after: None where it was taken away.
    """
    found = _spelled(name, before, after)
    if len({each[0] for each in found}) > 1:
        return SEVERAL
    if found:
        spelled, old, new = found[0]
        agreed = _agreed(list(_catalogued(spelled, old, new)))
        if agreed is not None and agreed.causes:
            return agreed
    if after is None:
        turned = _in_words(name, None, before)
        return None if turned is None else turned.back
    return _in_words(name, before, after)


def joint(moves: Iterable[Move | None]) -> Move | None:
    """One thing tried by several settings of a family: an effect may be of each, none of what all of them do."""
    told = [move for move in moves if move is not None]
    if not told:
        return None
    parts = {
        part: tuple(dict.fromkeys(code for move in told for code in getattr(move, part)))
        for part in ("relieved", "brought", "either")
    }
    return Move(acts_on=told[0].acts_on, **parts)


def _spelled(name: str, before: str | None, after: str | None) -> list[tuple[str, str | None, str | None]]:
    """(setting, value before, value after): by the column's own name, else by the settings that the arms spell."""
    if _is_spelling(name):
        return [(name, before, after)]
    arms = [
        {m["name"]: m["value"] or "true" for m in _SPELLED.finditer(arm or "") if _is_spelling(m["name"])}
        for arm in (before, after)
    ]
    names = [each for each in dict.fromkeys((*arms[0], *arms[1])) if arms[0].get(each) != arms[1].get(each)]
    return [(each, arms[0].get(each), arms[1].get(each)) for each in names]


def assigned(text: str) -> tuple[str, str] | None:
    """(setting, value) where a text holds `setting=value` once, with a setting that a catalogue has."""
    found = [(name, value) for name, value in ASSIGNED.findall(text) if _is_spelling(name)]
    return found[0] if len(found) == 1 else None


@functools.cache
def is_judged(name: str) -> bool:
    """True for the spelling of a setting that can move decode speed."""
    if not _is_spelling(name):
        return False
    for engine in (*ENGINES, COMMON):
        known = catalogue(engine)
        setting = known.find(name)
        if setting is not None and setting.name in known.judgements:
            return True
    return False


@functools.cache
def _is_spelling(name: str) -> bool:
    """A word of several parts that a catalogue has: `threads` or `model` head columns of any table."""
    return ("_" in name or "-" in name) and any(catalogue(each).find(name) for each in (*ENGINES, COMMON))


def _catalogued(name: str, before: str | None, after: str | None) -> Iterator[Move]:
    """By each engine that has a setting of that spelling and judged it."""
    for engine in (*ENGINES, COMMON):
        known = catalogue(engine)
        setting = known.find(name)
        judgement = None if setting is None else known.judgements.get(setting.name)
        if setting is None or judgement is None or judgement.acts_on in FASTER_ANYWAY:
            continue
        flag = known.flags.get("--" + name.lstrip("-").replace("_", "-")) if name != setting.name else None
        stored = None if flag is None else flag[1]
        values = [_value(text, setting, stored) for text in (before, after)]
        if judgement.acts_on in FEATURES and (values[0] in _UNUSED) != (values[1] in _UNUSED):
            used = _feature(judgement)
            if used is not None:
                yield used if values[0] in _UNUSED else used.back
                continue
        yield _judged(judgement, None if values[0] == values[1] else direction(*values))


def _value(text: str | None, setting: Setting, stored: Any) -> Any:
    if text is None or _ABSENT.match(text.strip()):
        if setting.type == "bool" or isinstance(stored, bool):
            return not stored if isinstance(stored, bool) else False
        values = {value for _, value in setting.default if isinstance(value, int | float | str)}
        return values.pop() if len(values) == 1 else Unknown("the default is not the same in every release")
    said = _TRUTHS.get(text.strip().lower())
    if said is not None:
        return said if not isinstance(stored, bool) or stored else not said
    try:
        number = float(text)
    except ValueError:
        return text.strip()
    if setting.type == "bool" and number in (0, 1):
        return bool(number)
    return number


def _feature(judgement: Judgement) -> Move | None:
    """Turning a feature on; None where the setting says in its own words which way it helps."""
    own = FEATURES[judgement.acts_on]
    said = (*judgement.relieves.get("set", ()), *judgement.relieves.get("lower", ()))
    return Move(acts_on=judgement.acts_on, brought=(own,)) if own in said else None


def _judged(judgement: Judgement, way: str | None) -> Move:
    """L codes are faults of a measurement, which no steady rate shows."""
    relieves = {
        each: tuple(code for code in codes if not code.startswith("L"))
        for each, codes in judgement.relieves.items()
    }
    acts_on = judgement.acts_on
    if way is None:
        return Move(acts_on=acts_on)
    if way in ("on", "off") and not {"on", "off"} & set(relieves):
        way = "set"
    if way == "set":
        return Move(acts_on=acts_on, either=() if acts_on in FEATURES else relieves.get("set", ()))
    # Where either way takes something away, the other way's gain has more than one reading: only the first is proof.
    first = next(iter(relieves))
    helps = relieves[first] if way == first else ()
    hurts = relieves[first] if OPPOSITE[way] == first else ()
    return Move(acts_on=acts_on, relieved=helps, brought=hurts)


def _agreed(told: list[Move]) -> Move | None:
    """Engines that spell a setting alike and say different things of it leave what all of them say."""
    if not told:
        return None
    parts = {
        part: tuple(code for code in getattr(told[0], part) if all(code in getattr(m, part) for m in told))
        for part in ("relieved", "brought", "either")
    }
    return Move(acts_on=told[0].acts_on, **parts)


def _in_words(name: str, before: str | None, after: str | None) -> Move | None:
    said = name if after is None else f"{name}={after}"
    lever = find_lever(said, before)
    return None if lever is None else _of_lever(lever, toward_cure(lever, said, before))


def _of_lever(lever: Lever, way: int) -> Move:
    if way == 0:
        return Move(acts_on=lever.acts_on, either=lever.causes if lever.cure == "either" else ())
    pulled = Move(acts_on=lever.acts_on, relieved=lever.causes, brought=lever.caused)
    if lever.cure == "either":
        return Move(acts_on=lever.acts_on, either=lever.causes)
    return pulled if way > 0 else pulled.back
