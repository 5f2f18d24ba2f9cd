"""Kubernetes and compose manifests: each container's command, arguments, variables and limits.

Reads the block style that people write these in, line by line, without a YAML library: keys, block lists, inline lists,
block scalars. Anchors and templates stay the text that they are.
"""

import re
import shlex
from collections.abc import Iterator, Sequence

import msgspec

from stepline.evidence.origin import Origin
from stepline.sources.settings.command import IMAGES, Launch, launch_with, launches, with_limits
from stepline.sources.settings.shell import CONTAINER, MAX_TEXT

_KEY = re.compile(r"^(?P<lead>[ ]*(?:- +)*)(?P<key>[\w./-]+):(?:[ \t]+(?P<value>.*?))?[ \t]*$")
_ITEM = re.compile(r"^[ ]*- +(?P<value>.*?)[ \t]*$")
_COMPOSE = {
    "cpus": "--cpus",
    "cpuset": "--cpuset-cpus",
    "cpu_shares": "--cpu-shares",
    "mem_limit": "--memory",
    "shm_size": "--shm-size",
    "ipc": "--ipc",
    "network_mode": "--network",
}


class _Line(msgspec.Struct, frozen=True):
    number: int
    indent: int
    """Where the key or the item's value begins."""
    starts: bool
    """Begins an item of a list."""
    key: str | None
    value: str


def manifest_launches(text: str, file: str) -> tuple[Launch, ...]:
    """Every engine that a container of the manifest starts."""
    lines = list(_lines(text[:MAX_TEXT]))
    found: list[Launch] = []
    for at, line in enumerate(lines):
        if line.key == "image" and line.value:
            launch = _of_container(_block(lines, at), line, file)
            if launch is not None:
                found.append(launch)
    return tuple(found)


def _lines(text: str) -> Iterator[_Line]:
    for number, raw in enumerate(text.expandtabs(2).splitlines(), 1):
        if not raw.strip() or raw.lstrip().startswith(("#", "---")):
            continue
        keyed = _KEY.match(raw)
        if keyed is not None:
            lead = keyed["lead"]
            yield _Line(number, len(lead), "-" in lead, keyed["key"], _bare(keyed["value"] or ""))
            continue
        item = _ITEM.match(raw)
        if item is not None:
            yield _Line(number, item.start("value"), starts=True, key=None, value=_bare(item["value"]))
        else:
            yield _Line(number, len(raw) - len(raw.lstrip()), starts=False, key=None, value=raw.strip())


def _bare(value: str) -> str:
    """A scalar without its quotes or the comment behind it."""
    value = value.strip()
    if value[:1] in "'\"" and len(value) > 1:
        end = value.find(value[0], 1)
        if end == len(value) - 1 or value[end + 1 :].lstrip().startswith("#"):
            return value[1:end]
    return re.sub(r"(^|\s)#.*$", "", value).rstrip()


def _block(lines: Sequence[_Line], at: int) -> list[_Line]:
    """The mapping that the line at this place is a key of."""
    indent = lines[at].indent
    first = at
    while first > 0 and not (lines[first].starts and lines[first].indent == indent):
        if lines[first - 1].indent < indent:
            break
        first -= 1
    last = at + 1
    while last < len(lines) and lines[last].indent >= indent:
        if lines[last].starts and lines[last].indent == indent:
            break
        if lines[last].starts and lines[last].key is None and lines[last].indent <= indent:
            break
        last += 1
    return list(lines[first:last])


def _of_container(block: list[_Line], image: _Line, file: str) -> Launch | None:
    words: list[str] = []
    variables: dict[str, str] = {}
    limits: dict[str, str] = {}
    for at, line in enumerate(block):
        if line.indent != image.indent or line.key is None:
            continue
        inside = _inside(block, at)
        if line.key in ("command", "entrypoint"):
            words = _words(line, inside) + words
        elif line.key == "args":
            words += _words(line, inside)
        elif line.key in ("env", "environment"):
            variables |= _variables(inside)
        elif line.key in _COMPOSE and line.value:
            limits[CONTAINER[_COMPOSE[line.key]]] = line.value
    launch = _started(words, image, variables, file)
    return None if launch is None else with_limits(launch, limits, Origin(file, image.number))


def _started(words: list[str], image: _Line, variables: dict[str, str], file: str) -> Launch | None:
    found = launches(shlex.join(words), file, image.number)
    if found:
        around = launch_with(found[0].engine, [], variables, file, image.number).said
        return msgspec.structs.replace(found[0], said=(*found[0].said, *around))
    engine = next((name for name, mark in IMAGES if mark.search(image.value)), None)
    return None if engine is None else launch_with(engine, words, variables, file, image.number)


def _inside(block: Sequence[_Line], at: int) -> list[_Line]:
    """What belongs to a key: deeper lines, and list items that begin at its own depth."""
    here = block[at]
    found = []
    for line in block[at + 1 :]:
        if line.indent <= here.indent:
            break
        found.append(line)
    return found


def _words(line: _Line, inside: Sequence[_Line]) -> list[str]:
    """A command in any of its spellings as its words."""
    if line.value[:1] == "[" or (not line.value and inside and inside[0].value[:1] == "["):
        return _inline(" ".join([line.value, *(each.value for each in inside)]))
    if line.value and line.value[:1] not in "|>":
        return _split(line.value)
    if line.value:
        return _split("\n".join(_whole(each) for each in inside))
    return [_whole(each) for each in inside if each.starts] or _split(
        " ".join(_whole(each) for each in inside)
    )


def _whole(line: _Line) -> str:
    return line.value if line.key is None else f"{line.key}: {line.value}"


def _inline(text: str) -> list[str]:
    try:
        listed = msgspec.json.decode(text[: text.rfind("]") + 1])
    except msgspec.DecodeError:
        return [_bare(part) for part in text.strip(" []").split(",")]
    return [str(word) for word in listed] if isinstance(listed, list) else []


def _split(text: str) -> list[str]:
    try:
        return shlex.split(re.sub(r"\\\r?\n", " ", text))
    except ValueError:
        return text.split()


def _variables(inside: Sequence[_Line]) -> dict[str, str]:
    """`- name: A` with `value: B`, `A: B`, or `- A=B`."""
    found: dict[str, str] = {}
    name = None
    for line in inside:
        if line.key == "name":
            name = line.value
        elif line.key == "value" and name is not None:
            found[name] = line.value
        elif line.key is not None and line.key not in (
            "valueFrom",
            "fieldRef",
            "fieldPath",
            "secretKeyRef",
            "key",
        ):
            found[line.key] = line.value
        elif line.key is None and "=" in line.value:
            variable, _, value = line.value.partition("=")
            found[variable] = value
    return found
