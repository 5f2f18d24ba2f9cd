"""Levers people pull, and the causes each would remove: a data file with its reasons."""

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

Cure = Literal["up", "down", "on", "off", "itself", "either"]


class Lever(msgspec.Struct, frozen=True):
    """A pattern for a lever's name, what it acts on, the rule codes that pulling it removes and those it brings about.

    `cure` says which way removes its causes: a larger or smaller value, turning it on or off, the arm whose own name
    fits the pattern, or either of two alternatives (then the slower one has the cause).
    """

    pattern: str
    acts_on: str
    causes: tuple[str, ...] = ()
    caused: tuple[str, ...] = ()
    cure: Cure = "either"
    off: str = ""
    """Further values that mean turned off, as a regular expression."""


_OFF = re.compile(r"^(?:off|false|no|none|0|disabled?|without|removed)\b")
_NEGATED = re.compile(r"\b(?:disable|no|without|enforce)\b")
_NUMBER = re.compile(r"^\d+(?:\.\d+)?(?:e[+-]?\d+)?$")


@cache
def known_levers() -> tuple[Lever, ...]:
    """All levers of `levers.toml`, in order."""
    text = resources.files("stepline.facts").joinpath("levers.toml").read_text("utf-8")
    return tuple(msgspec.convert(entry, Lever) for entry in tomllib.loads(text)["lever"])


def find_lever(name: str, before: str | None = None) -> Lever | None:
    """The first lever whose pattern the name matches, or its name with the value before; None where nobody knows it."""
    said = [_plain(name)]
    if before is not None:
        said.append(_plain(f"{name.partition('=')[0]}={before}"))
    return next(
        (lever for lever in known_levers() if any(re.search(lever.pattern, text) for text in said)), None
    )


def toward_cure(lever: Lever, name: str, before: str | None) -> int:
    """1 where the change goes the way that removes the lever's causes, -1 for the other way, 0 where neither is known.

    Args:
        lever: what is known of the setting.
        name: the change, `setting=value` or in words.
        before: the value before; None where only the change is named: then it was pulled.
    """
    setting, equals, value = name.partition("=")
    if not equals:
        return -1 if lever.cure == "off" or _OFF.match(_plain(name)) else 1
    if before is None:
        turned_on = _is_on(lever, setting, value)
        return 1 if lever.cure not in ("on", "off") or turned_on == (lever.cure == "on") else -1
    if lever.cure in ("up", "down"):
        if not (_NUMBER.match(before.lower()) and _NUMBER.match(value.lower())):
            return 0
        rises = float(value) - float(before)
        return 0 if not rises else 1 if (rises > 0) == (lever.cure == "up") else -1
    if lever.cure in ("on", "off"):
        states = [_is_on(lever, setting, one) for one in (before, value)]
        if states[0] == states[1]:
            return 0
        return 1 if states[1] == (lever.cure == "on") else -1
    if lever.cure == "itself":
        fits = [bool(re.search(lever.pattern, _plain(one))) for one in (before, value)]
        return 0 if fits[0] == fits[1] else 1 if fits[1] else -1
    return 0


def _is_on(lever: Lever, setting: str, value: str) -> bool:
    said = _plain(value)
    is_off = bool(_OFF.match(said) or (lever.off and re.search(lever.off, said)))
    # `disable_x=True` turns x off; `mode=eager` says it in the value.
    switch = said in ("true", "false", "1", "0", "yes", "no", "on", "off")
    negated = bool(_NEGATED.search(_plain(setting)))
    return is_off if negated and switch else not is_off


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text.lower()).strip()
