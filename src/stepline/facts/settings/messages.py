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

    def pattern(self) -> re.Pattern[str]:
        """The template as a pattern with one group a value; blanks match any run of blanks."""
        pieces = [r"\s+".join(map(re.escape, piece.split(" "))) for piece in self.template.split(HOLE)]
        hole = rf"(.{{0,{MAX_FILLED}}}?)"
        last = hole if not pieces[-1] else ""
        body = hole.join(pieces[:-1] if last else pieces)
        return re.compile(body + (rf"(.{{0,{MAX_FILLED}}})$" if last else ""), re.DOTALL)


@functools.cache
def messages(engine: str) -> tuple[Message, ...]:
    """All messages known of an engine; what people linked comes first and stands for its template."""
    written = _read(engine, f"{engine}.messages_written.jsonl", judged=True)
    linked = {message.template for message in written}
    generated = _read(engine, f"{engine}.messages.jsonl", judged=False)
    return (*written, *(message for message in generated if message.template not in linked))


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
