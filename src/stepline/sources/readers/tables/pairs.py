"""Names beside their values: `Mean TTFT (ms): 71.2` a line each, or `concurrency=16 tok_s=28` in one."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from stepline.sources.quantities.cells import cell
from stepline.sources.quantities.quantity import parse

_NAMED = re.compile(
    r"^\s*(?:[-*•>]\s+)?(?P<name>[A-Za-z#%][^:=|\n]{0,80}?)\s*(?::|=|\s{3,})\s*(?P<value>\S.{0,60}?)\s*$"
)
_EQUAL = re.compile(r"(?P<name>[A-Za-z][\w./%-]{0,40})\s*=\s*(?P<value>[^\s,;|]+)")
_RULE = re.compile(r"^[\s=\-_*~#]*(?P<title>[A-Za-z][^=]{0,60}?)?[\s=\-_*~#]*$")
MIN_BLOCK = 3
"""Values of one block from which lines with a colon are a block of results and no prose."""


class Block(NamedTuple):
    """Values that stand together, by name, and the line where they begin (from 1)."""

    values: Mapping[str, Any]
    line: int


def blocks(lines: Sequence[str]) -> Iterator[Block]:
    """Every block of `Name: value` lines; a name that comes again begins the next one."""
    values: dict[str, Any] = {}
    begun, last = 0, 0
    known = 0
    for number, line in enumerate(lines, 1):
        found = _NAMED.match(line)
        name, value = (found["name"].strip(), found["value"]) if found else ("", "")
        if found is None or not _usable(value):
            ended = bool(line.strip()) and not _RULE.match(line)
            if values and (ended or number - last > 3):
                yield from _worth(values, begun, known)
                values, known = {}, 0
            continue
        if name in values:
            yield from _worth(values, begun, known)
            values, known = {}, 0
        begun = begun if values else number
        last = number
        values[name] = value
        known += parse(name).what is not None
    yield from _worth(values, begun, known)


def equals(lines: Sequence[str]) -> Iterator[Block]:
    """Every line that gives two or more names their values."""
    for number, line in enumerate(lines, 1):
        values = {found["name"]: found["value"] for found in _EQUAL.finditer(line)}
        told = [name for name, value in values.items() if parse(name).what is not None and cell(value)]
        if len(told) >= 2:
            yield Block(values, number)


def _usable(value: str) -> bool:
    return cell(value) is not None or bool(re.fullmatch(r"[\w./+-]{1,60}", value))


def _worth(values: Mapping[str, Any], line: int, known: int) -> Iterator[Block]:
    if known >= MIN_BLOCK:
        yield Block(dict(values), line)
