"""Messages by which an engine says that it changed a setting: templates out of its own sources."""

import functools
import re
from importlib import resources
from typing import Any

import msgspec

from stepline.facts.settings.catalogue import COMMON, catalogue

HOLE = "{}"
MAX_FILLED = 4000
"""Characters that one filled-in value may have; a list of graph sizes has some hundreds."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One template, the setting it tells of, and where in it the values stand."""

    template: str
    """`{}` for every value that is filled in."""
    setting: str
    engine: str
    """Whose catalogue the setting stands in."""
    value: Any = None
    """What the engine set, where the source itself says so."""
    has_value: bool = False
    engine_group: int | None = None
    """Which filled-in value, from 0, is the one that the engine set."""
    user_group: int | None = None
    """Which one is what it was asked for."""
    file: str
    versions: tuple[str, ...]
    judged: bool = False
    """True where a person linked message and setting, false where the statements beside the log call do."""

    @property
    def anchor(self) -> str:
        """The longest piece between two values: a line without it is another message."""
        return max(self.template.split(HOLE), key=len).strip()


MIN_OPENING = 24
"""Letters of an opening: fewer are in many messages."""
TAIL = 16
"""Letters behind the last value that must still be there to say where it ends."""


def whole_pattern(template: str) -> re.Pattern[str]:
    """The template as a pattern with one group a value; blanks match any run of blanks."""
    return _compiled(template.split(HOLE))


def opening_pattern(template: str, groups: tuple[int, ...]) -> re.Pattern[str] | None:
    """As much of it as holds these values, for a line that was cut or worded anew behind them; None for too little.

    Without values there is none: the end may be all that tells one message from another.
    """
    if not groups:
        return None
    pieces = template.split(HOLE)[: max(groups) + 2]
    pieces[-1] = pieces[-1][:TAIL]
    return _compiled(pieces) if sum(map(len, pieces)) >= MIN_OPENING and pieces[-1].strip() else None


_VALUE = rf"(.{{0,{MAX_FILLED}}}?)"
_FIRST = rf"(\S{{0,{MAX_FILLED}}})"
_LAST = rf"(.{{0,{MAX_FILLED}}})$"


def _compiled(pieces: list[str]) -> re.Pattern[str]:
    words = [r"\s+".join(map(re.escape, piece.split(" "))) for piece in pieces]
    body = words[0]
    for at, word in enumerate(words[1:], 1):
        ends = at == len(words) - 1 and not word
        # A value that opens the message is one word: what stands before it is the log's own head.
        body += (_LAST if ends else _FIRST if at == 1 and not words[0] else _VALUE) + word
    return re.compile(body, re.DOTALL)


@functools.cache
def messages(engine: str) -> tuple[Message, ...]:
    """All messages known of an engine, each setting of a template once; what people linked stands for its template."""
    written = _read(engine, f"{engine}.messages_written.jsonl", judged=True)
    linked = {message.template for message in written}
    generated = [
        message
        for message in _read(engine, f"{engine}.messages.jsonl", judged=False)
        if message.template not in linked
    ]
    generated.sort(key=lambda message: (message.engine_group is None, not message.has_value))
    once: dict[tuple[str, str], Message] = {}
    for message in (*written, *generated):
        once.setdefault((message.template, message.setting), message)
    return tuple(once.values())


def _read(engine: str, name: str, *, judged: bool) -> tuple[Message, ...]:
    file = resources.files("stepline.facts.settings").joinpath(name)
    if not file.is_file():
        return ()
    own, common = catalogue(engine).settings, catalogue(COMMON).settings
    found = []
    for text in file.read_bytes().splitlines():
        line = msgspec.json.decode(text)
        if "template" not in line or (line["setting"] not in own and line["setting"] not in common):
            continue
        where = engine if line["setting"] in own else COMMON
        found.append(
            msgspec.convert(line | {"engine": where, "judged": judged, "has_value": "value" in line}, Message)
        )
    return tuple(found)
