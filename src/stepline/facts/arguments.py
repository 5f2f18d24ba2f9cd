"""What kind of thing a start argument is: the process's own, one that follows from others, or a setting."""

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Literal

import msgspec


class _Arguments(msgspec.Struct, frozen=True):
    own: tuple[str, ...]
    follows: tuple[str, ...]
    families: dict[str, str]


Kind = Literal["own", "follows", "setting"]


@cache
def kind_of(name: str) -> Kind:
    """Which kind an argument is; one that nobody described is a setting."""
    known = _known()
    if any(re.fullmatch(pattern, name) for pattern in known.own):
        return "own"
    return "follows" if any(re.fullmatch(pattern, name) for pattern in known.follows) else "setting"


@cache
def family_of(name: str) -> str:
    """The one thing that an argument belongs to: its own name where nobody described any."""
    families = _known().families.items()
    return next((family for family, pattern in families if re.fullmatch(pattern, name)), name)


@cache
def _known() -> _Arguments:
    text = resources.files("stepline.facts").joinpath("arguments.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Arguments)
