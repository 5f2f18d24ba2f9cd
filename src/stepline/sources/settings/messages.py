"""Lines in which an engine says that it changed a setting, as what it was asked for and what it runs with."""

import functools
import re
from collections.abc import Iterable
from typing import Any

from stepline.evidence.origin import Origin
from stepline.evidence.setting import SettingSaid
from stepline.facts.settings import COMMON, catalogue
from stepline.facts.settings.messages import Message, messages, opening_pattern, whole_pattern
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
        self._by_template: dict[str, list[Message]] = {}
        for message in messages(engine):
            self._by_template.setdefault(message.template, []).append(message)

    def read(self, line: str, file: str, number: int | None = None) -> tuple[SettingSaid, ...]:
        """What a line changes; empty for most."""
        if len(line) > MAX_LINE:
            return ()
        candidates = {
            message.template: message
            for word in dict.fromkeys(_WORD.findall(line))
            for message in self._by_word.get(word, ())
        }
        ordered = sorted(candidates.values(), key=lambda message: -len(message.template))
        return self._matched(ordered, line, Origin(file, number))

    def _matched(self, ordered: list[Message], line: str, origin: Origin) -> tuple[SettingSaid, ...]:
        """The longest template that fits the whole; where none does, the longest whose opening fits."""
        for pattern_of in (_whole, _opening):
            for message in ordered:
                pattern = pattern_of(message)
                if pattern is not None and (match := pattern.search(line)):
                    alike = [
                        each for each in self._by_template[message.template] if pattern_of(each) is not None
                    ]
                    said = {(each.engine, each.setting): each for each in reversed(alike)}
                    return tuple(_said(each, match, line, origin) for each in said.values())
        return ()


def changes_in(lines: Iterable[str], engine: str, file: str) -> tuple[SettingSaid, ...]:
    """Every change that a log tells of, in order."""
    reader = ChangeReader(engine)
    return tuple(said for number, line in enumerate(lines, 1) for said in reader.read(line, file, number))


@functools.cache
def _index(engine: str) -> dict[str, tuple[Message, ...]]:
    """Messages by the rarest word of their longest piece, so that a line asks for few of them."""
    known = messages(engine)
    spread: dict[str, int] = {}
    for message in known:
        for word in set(_whole_words(message.anchor)):
            spread[word] = spread.get(word, 0) + 1
    index: dict[str, list[Message]] = {}
    for message in known:
        for piece in {message.anchor, _first_piece(message)}:
            words = _whole_words(piece)
            if words:
                index.setdefault(min(words, key=lambda word: (spread.get(word, 0), -len(word))), []).append(
                    message
                )
    return {word: tuple(entries) for word, entries in index.items()}


def _first_piece(message: Message) -> str:
    """What stands before the last value that is asked for: a cut line still has it."""
    return max(
        message.template.split("{}")[: max(message.engine_group or 0, message.user_group or 0) + 1], key=len
    )


def _whole(message: Message) -> re.Pattern[str] | None:
    return _patterns(message.template, message.engine_group, message.user_group)[0]


def _opening(message: Message) -> re.Pattern[str] | None:
    return _patterns(message.template, message.engine_group, message.user_group)[1]


@functools.cache
def _patterns(
    template: str, engine_group: int | None, user_group: int | None
) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
    """Made when a line may be such a message: all of them at once take a fifth of a second."""
    groups = tuple(group for group in (engine_group, user_group) if group is not None)
    return whole_pattern(template), opening_pattern(template, groups)


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
