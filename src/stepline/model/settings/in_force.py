"""The value that a setting has in force, by the order in which sources are believed."""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from stepline.evidence.setting import SettingSaid
from stepline.facts.settings import COMMON, Catalogue, Setting, Unknown, catalogue

RANK = {"log": 3, "server_info": 2, "command": 1, "environment": 0}
"""The engine's last word in its log over `/server_info` over who started it; a flag over the variable of a setting."""


class InForce(msgspec.Struct, frozen=True, kw_only=True):
    """One setting: what it is, who says so, and what it would be if nobody had said anything."""

    engine: str
    """Whose catalogue it stands in."""
    name: str
    value: Any
    """Unknown with the reason where nothing tells."""
    by: Literal["log", "server_info", "command", "environment", "default"]
    default: Any
    """Of that release; Unknown with the reason where it was not read."""
    asked: Any = None
    """What it was asked for, where the engine runs with another value; None where it was not asked or is not known."""
    changed: SettingSaid | None = None
    """The engine's own words for its change, where it said so."""
    said: tuple[SettingSaid, ...] = ()
    """Everything that was said of it, the believed word first."""

    @property
    def known(self) -> bool:
        """True when its value is known."""
        return not isinstance(self.value, Unknown)


class Settings:
    """All settings of one server; what nobody spoke of has the default of its release."""

    def __init__(self, engine: str, version: str | None, said: Iterable[SettingSaid]) -> None:
        """`said` in the order in which it was read: of two words of one source the later stands."""
        self.engine, self.version = engine, version
        self._catalogues: tuple[Catalogue, ...] = (catalogue(engine), catalogue(COMMON))
        self._said: dict[str, list[SettingSaid]] = {}
        for word in said:
            if word.engine in (engine, COMMON):
                self._said.setdefault(word.name, []).append(word)

    def spoken(self) -> tuple[InForce, ...]:
        """Every setting that somebody spoke of."""
        found = (self.get(name) for name in self._said)
        return tuple(setting for setting in found if setting is not None)

    def get(self, word: str) -> InForce | None:
        """The setting of that name or spelling; None where neither catalogue has it."""
        for known in self._catalogues:
            setting = known.find(word)
            if setting is not None:
                return self._of(setting)
        return None

    def _of(self, setting: Setting) -> InForce:
        default = setting.default_at(self.version)
        words = self._said.get(setting.name, [])
        if not words:
            return InForce(
                engine=setting.engine, name=setting.name, value=default, by="default", default=default
            )
        ordered = [word for _, word in sorted(enumerate(words), key=lambda item: (RANK[item[1].by], item[0]))]
        ordered.reverse()
        first = ordered[0]
        change = next((word for word in ordered if word.changed), None)
        told = _told(ordered)
        value = Unknown("the engine changed it and did not say to what") if told is None else told.value
        return InForce(
            engine=setting.engine,
            name=setting.name,
            value=value,
            by=first.by,
            default=default,
            asked=_asked(ordered, change, value),
            changed=change,
            said=tuple(ordered),
        )


def in_force(engine: str, version: str | None, said: Iterable[SettingSaid]) -> dict[str, InForce]:
    """Every setting that somebody spoke of, by name."""
    return {setting.name: setting for setting in Settings(engine, version, said).spoken()}


def _told(ordered: list[SettingSaid]) -> SettingSaid | None:
    """The most believed word that has a value: a change without one leaves only what was said after it."""
    first = ordered[0]
    if not (first.changed and first.value is None):
        return first
    return None


def _asked(ordered: list[SettingSaid], change: SettingSaid | None, value: Any) -> Any:
    """What somebody wanted and did not get."""
    if change is not None and change.asked is not None:
        return change.asked
    wanted = next((word for word in ordered if word.by in ("command", "environment")), None)
    if wanted is None and change is not None:
        wanted = next((word for word in ordered if not word.changed), None)
    if wanted is None or same(wanted.value, value):
        return None
    return wanted.value


def same(one: Any, other: Any) -> bool:
    """Equal values, however they are written: 4 and 4.0, 'FP8' and 'fp8'; never a number and a truth."""
    if isinstance(one, bool) is not isinstance(other, bool):
        return False
    if isinstance(one, str) and isinstance(other, str):
        return one.strip().lower() == other.strip().lower()
    return bool(one == other)
