"""Launch commands in a text: what a server was asked for, wherever somebody pasted it.

`python3 -m sglang.launch_server …`, `vllm serve …`, the same after `docker run … IMAGE` and in lists of arguments of
compose and Kubernetes files, with backslashes at line ends and assignments of environment variables before them.
"""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from stepline.evidence.run import Run
from stepline.sources.engines.sglang import settings as sglang
from stepline.sources.engines.vllm import settings as vllm
from stepline.sources.settings.flags import read_flags

_ENTRIES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("sglang", re.compile(r"(?:-m\s+sglang\.launch_server|\bsglang\s+serve|\bsglang\.launch_server)\b")),
    ("vllm", re.compile(r"(?:\bvllm\s+serve|-m\s+vllm\.entrypoints\.[\w.]+|\bvllm/vllm-openai\S*)(?=\s|$)")),
)
_ARGUMENT = re.compile(r"^\s*(?:-\s+)?[\"']?(--?[a-z][\w-]*(?:[= ][^\"']*)?)[\"']?\s*,?\s*$")
_PLACEHOLDER = re.compile(r"^[<$]|^\[[A-Za-z_ ]+\]$|^\{[A-Za-z_]+\}$|^\.\.\.")
MAX_COMMAND = 8000
_ENDS = ("&&", "||", "|", ";", "&", ">", "2>&1")
_PROMPT = re.compile(r"\s*(?:[$#>+%]\s*)?(?:\w+=\S*\s+)*(?:(?:sudo|exec|nohup|env)\s+)*(?:\S*/)?")
"""What stands before a command on a line of its own: a prompt, assignments, a path."""
_NAME = re.compile(r"[/.\d_]|\w-\w")
"""A model's name or path, as words of a sentence do not look."""


class Command(NamedTuple):
    """One launch command."""

    engine: str
    settings: dict[str, Any]
    line: int


def commands(lines: Sequence[str]) -> Iterator[Command]:
    """Every launch command in a text, with the line it begins at (from 1)."""
    at = 0
    while at < len(lines):
        entry = next(
            ((name, found) for name, pattern in _ENTRIES if (found := pattern.search(lines[at]))), None
        )
        if entry is None or len(lines[at]) > MAX_COMMAND:
            at += 1
            continue
        name, found = entry
        text, after = _whole(lines, at, found.end())
        settings = _settings(name, text, own_line=bool(_PROMPT.fullmatch(lines[at][: found.start()])))
        if settings:
            yield Command(name, settings, at + 1)
        at = max(at + 1, after)


def read_commands(lines: Sequence[str], file: str) -> list[Run]:
    """What the commands say of the server, each a run; the last of one server wins where somebody joins them."""
    makers = {"sglang": sglang.facts_from_settings, "vllm": vllm.facts_from_settings}
    return [Run(server=makers[one.engine](one.settings, file, one.line)) for one in commands(lines)]


def _whole(lines: Sequence[str], at: int, begin: int) -> tuple[str, int]:
    """The command behind its entry: with continued lines, and with arguments that stand one a line below."""
    parts = [lines[at][begin:]]
    after = at + 1
    while parts[-1].rstrip().endswith("\\") and after < len(lines):
        parts[-1] = parts[-1].rstrip()[:-1]
        parts.append(lines[after])
        after += 1
    if len(parts) == 1:
        while after < len(lines) and (found := _ARGUMENT.match(lines[after])):
            parts.append(found[1])
            after += 1
    return " ".join(parts)[:MAX_COMMAND], after


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=False)
    except ValueError:  # a quotation that ends elsewhere
        return text.split()


def _is_model(words: Sequence[str], *, own_line: bool) -> bool:
    """True where the first word is the model: in a sentence about a command another word stands there."""
    if not words or words[0].startswith("-") or _PLACEHOLDER.match(words[0]):
        return False
    ends = len(words) == 1 or words[1].startswith("-") or words[1] in _ENDS
    return ends and (own_line or _NAME.search(words[0]) is not None)


def _settings(engine: str, text: str, *, own_line: bool) -> dict[str, Any]:
    """Settings by their names with underscores; a flag without a value is True, `--no-x` turns x off.

    `own_line` says that nothing but a prompt stands before the command.
    """
    words = _words(text)
    found: dict[str, Any] = {}
    if engine == "vllm" and _is_model(words, own_line=own_line):
        found["model"] = words[0]
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in _ENDS:
            break
        if not re.match(r"^--?[a-zA-Z]", word):
            continue
        flag, equals, value = word.partition("=")
        values = [value] if equals else []
        while not equals and at < len(words) and not re.match(r"^(?:--?[a-zA-Z]|&&|\|\|?|;|&|>)", words[at]):
            values.append(words[at])
            at += 1
        if not any(_PLACEHOLDER.match(one) for one in values):
            found |= _setting(engine, flag, values)
    return found


def _setting(engine: str, flag: str, values: Sequence[str]) -> dict[str, Any]:
    """One flag by the catalogue's name; a flag of a release that the catalogue does not hold by its own."""
    given = read_flags(engine, [flag, *values]).given
    if given:
        return {given[0].name: given[0].value}
    name = flag.lstrip("-").replace("-", "_")
    if name.startswith("no_") and not values:
        return {name: True, name.removeprefix("no_"): False}
    return {name: _value(values)}


def _value(values: Sequence[str]) -> Any:
    if not values:
        return True
    read = [_one(value) for value in values]
    return read[0] if len(read) == 1 else read


def _one(text: str) -> Any:
    if re.fullmatch(r"-?\d{1,15}", text):
        return int(text)
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text.startswith(("{", "[")):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text
