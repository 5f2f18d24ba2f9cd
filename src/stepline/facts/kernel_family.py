"""How a kernel works, where the file that ships it or its name says: tensor cores, splitting, what sizes its work."""

import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Literal

import msgspec

from stepline.facts import kernel_dictionary
from stepline.facts.kernel_grammar import LONGEST_NAME, spoken
from stepline.facts.kernels import component


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """None where nobody read it; `source` names the packages that ship a kernel of this name."""

    tensor: bool | None = None
    """Multiplies on tensor cores, by its body (Triton, CuTe and TileLang kernels only)."""
    kind: str | None = None
    """Of attention and experts: what the part does with the kernel."""
    split: Literal["parts", "merge"] | None = None
    sized: Literal["live", "selected", "configured"] | None = None
    rereads: Literal["slot", "head"] | None = None
    fallback: str | None = None
    """What it stands in for."""
    why: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    """`package version: file`, each."""


class _Rule(msgspec.Struct, frozen=True):
    why: str
    at: str | None = None
    words: str | None = None
    parts: tuple[str, ...] = ()
    kind: str | None = None
    split: Literal["parts", "merge"] | None = None
    sized: Literal["live", "selected", "configured"] | None = None
    rereads: Literal["slot", "head"] | None = None
    fallback: str | None = None


@lru_cache(maxsize=20_000)
def family(name: str) -> Family:
    """What is known of how the kernel of that name works."""
    found = kernel_dictionary.shipped(spoken(name))
    places = [f"{one.place}::{one.name.rpartition('::')[2]}" for one in found]
    part = component(name).component
    matching = [
        rule
        for rule, at, words in _rules()
        if (not rule.parts or part in rule.parts) and _matches(name, places, at, words)
    ]
    return Family(
        tensor=kernel_dictionary.tensor(found),
        kind=next((rule.kind for rule in matching if rule.kind), None),
        split=next((rule.split for rule in matching if rule.split), None),
        sized=next((rule.sized for rule in matching if rule.sized), None),
        rereads=next((rule.rereads for rule in matching if rule.rereads), None),
        fallback=next((rule.fallback for rule in matching if rule.fallback), None),
        why=tuple(rule.why for rule in matching if not rule.kind),
        source=tuple(f"{one.package} {one.version}: {one.file}" for one in found),
    )


def _matches(name: str, places: list[str], at: re.Pattern[str] | None, words: re.Pattern[str] | None) -> bool:
    if words is not None and words.search(name, 0, LONGEST_NAME):
        return True
    return at is not None and bool(places) and all(at.search(place) for place in places)


@lru_cache(maxsize=1)
def _rules() -> tuple[tuple[_Rule, re.Pattern[str] | None, re.Pattern[str] | None], ...]:
    text = (files("stepline.facts") / "kernel_families.toml").read_text("utf-8")
    rules = msgspec.convert(tomllib.loads(text)["family"], tuple[_Rule, ...])
    return tuple((rule, _compiled(rule.at), _compiled(rule.words)) for rule in rules)


def _compiled(pattern: str | None) -> re.Pattern[str] | None:
    return None if pattern is None else re.compile(pattern, re.IGNORECASE)
