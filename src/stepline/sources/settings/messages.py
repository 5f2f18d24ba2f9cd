"""Lines in which an engine says that it changed a setting, as what it was asked for and what it runs with."""

import functools
import re
from collections.abc import Iterable
from typing import Any

from stepline.evidence.origin import Origin
from stepline.evidence.setting import SettingSaid
from stepline.facts.settings import COMMON, catalogue
from stepline.facts.settings.messages import Message, messages
from stepline.sources.redact import excerpt
from stepline.sources.settings.values import parse_value

MAX_LINE = 20_000
"""Characters of a line that are looked at; dumps are longer and are no such message."""
_WORD = re.compile(r"[A-Za-z_]{4,}")


class ChangeReader:
    """Reads one engine's messages, line by line."""

    def __init__(self, engine: str) -> None:
        """`engine` is one of `facts.settings.ENGINES`."""
        self._engine = engine
        self._by_word = _index(engine)

    def read(self, line: str, file: str, number: int | None = None) -> tuple[SettingSaid, ...]:
        """What a line changes; empty for most."""
        if len(line) > MAX_LINE:
            return ()
        candidates = [
            entry for word in dict.fromkeys(_WORD.findall(line)) for entry in self._by_word.get(word, ())
        ]
        found: dict[tuple[str, str], SettingSaid] = {}
        for message, pattern in sorted(candidates, key=lambda entry: -len(entry[0].template)):
            if message.anchor in line and (match := pattern.search(line)):
                key = (message.engine, message.setting)
                found.setdefault(key, _said(message, match, line, Origin(file, number)))
        return tuple(found.values())


def changes_in(lines: Iterable[str], engine: str, file: str) -> tuple[SettingSaid, ...]:
    """Every change that a log tells of, in order."""
    reader = ChangeReader(engine)
    return tuple(said for number, line in enumerate(lines, 1) for said in reader.read(line, file, number))


@functools.cache
def _index(engine: str) -> dict[str, tuple[tuple[Message, re.Pattern[str]], ...]]:
    """Messages by the rarest word of their longest piece, so that a line asks for few of them."""
    known = messages(engine)
    spread: dict[str, int] = {}
    for message in known:
        for word in set(_whole_words(message.anchor)):
            spread[word] = spread.get(word, 0) + 1
    index: dict[str, list[tuple[Message, re.Pattern[str]]]] = {}
    for message in known:
        words = _whole_words(message.anchor)
        if words:
            rarest = min(words, key=lambda word: (spread[word], -len(word)))
            index.setdefault(rarest, []).append((message, message.pattern()))
    return {word: tuple(entries) for word, entries in index.items()}


def _whole_words(piece: str) -> list[str]:
    """Words that no filled-in value beside them can run into."""
    return [
        match[0]
        for match in _WORD.finditer(piece)
        if (match.start() > 0 or not piece[:1].isalpha()) and match.end() < len(piece)
    ] or _WORD.findall(piece)


def _said(message: Message, match: re.Match[str], line: str, origin: Origin) -> SettingSaid:
    value = message.value
    if message.engine_group is not None:
        value = _filled(message, match, message.engine_group)
    asked = None if message.user_group is None else _filled(message, match, message.user_group)
    return SettingSaid(
        engine=message.engine,
        name=message.setting,
        value=value,
        by="log",
        origin=origin,
        changed=True,
        asked=asked,
        words=excerpt(line[match.start() :], 300),
    )


def _filled(message: Message, match: re.Match[str], group: int) -> Any:
    text = match[group + 1].strip().strip("'\"`")
    text = text.removesuffix(".") if not re.fullmatch(r"[\d.]+\.\d+", text) else text
    name = text.rpartition(".")[2] if re.fullmatch(r"\w+(\.[A-Z_]+)", text) else text
    setting = catalogue(message.engine if message.engine != COMMON else COMMON).settings[message.setting]
    return parse_value(setting, name)
