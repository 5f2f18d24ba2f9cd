"""Levers people pull, and the causes each would remove: a data file with its reasons."""

import re
import tomllib
from functools import cache
from importlib import resources

import msgspec


class Lever(msgspec.Struct, frozen=True):
    """A pattern for a lever's name, what pulling it acts on, the rule codes it removes and those it brings about."""

    pattern: str
    acts_on: str
    causes: tuple[str, ...] = ()
    caused: tuple[str, ...] = ()


@cache
def known_levers() -> tuple[Lever, ...]:
    """All levers of `levers.toml`, in order."""
    text = resources.files("stepline.facts").joinpath("levers.toml").read_text("utf-8")
    return tuple(msgspec.convert(entry, Lever) for entry in tomllib.loads(text)["lever"])


def find_lever(name: str) -> Lever | None:
    """The first lever whose pattern the name matches; None for one nobody described."""
    return next((lever for lever in known_levers() if re.search(lever.pattern, name, re.IGNORECASE)), None)
