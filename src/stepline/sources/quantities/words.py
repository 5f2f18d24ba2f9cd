"""The vocabulary: which phrases mean what, read once from words.toml."""

import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

CLASSES = (
    *("what", "noun", "side", "rate", "token_rate", "request_rate", "time", "count", "statistic", "unit"),
    *("per", "subject", "instrument", "neutral", "arm", "changes", "part", "clock", "tool"),
)
"""What a phrase can be; one may be of several classes (`min` is a statistic and a unit)."""


class Phrase(NamedTuple):
    """Words of a name that mean something together, or one word that means nothing known."""

    words: tuple[str, ...]
    meanings: dict[str, str]
    """By class; empty for an unknown word."""

    @property
    def text(self) -> str:
        """As it would be written."""
        return " ".join(self.words)


@cache
def vocabulary() -> dict[tuple[str, ...], dict[str, str]]:
    """Every phrase with its meaning in each class."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for kind in CLASSES:
        for meaning, phrases in _file()[kind].items():
            for phrase in phrases:
                found.setdefault(tuple(phrase.split()), {}).setdefault(kind, meaning)
    return found


@cache
def typed_by_hand() -> frozenset[str]:
    """Phrases that stand in no reference."""
    return frozenset(phrase for phrases in _file()["by_hand"].values() for phrase in phrases)


@cache
def elsewhere() -> dict[str, str]:
    """Words of names that say nothing of use, each with the reason."""
    return {phrase: reason for reason, phrases in _file()["elsewhere"].items() for phrase in phrases}


def column_words() -> dict[str, list[str]]:
    """Words in names of columns that measure nothing, by what such a column is."""
    return _file()["column"]


@cache
def _file() -> dict[str, dict[str, list[str]]]:
    text = resources.files("stepline.sources.quantities").joinpath("words.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def _longest() -> int:
    return max(map(len, vocabulary()))


def phrases_of(words: Sequence[str]) -> Iterator[Phrase]:
    """The words of a name as phrases, the longest that fits at each place."""
    known = vocabulary()
    at = 0
    while at < len(words):
        for length in range(min(_longest(), len(words) - at), 0, -1):
            taken = tuple(words[at : at + length])
            if length == 1 or taken in known:
                yield Phrase(taken, known.get(taken, {}))
                at += length
                break
