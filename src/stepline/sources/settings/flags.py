"""The words behind an engine's name on a command line, as settings of its catalogue."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from stepline.facts.settings import Catalogue, Setting, catalogue
from stepline.sources.settings.values import FALSE, TRUE, clean, parse_list, parse_value

NO_ABBREVIATION = ("vllm", "tgi", "llama_cpp", "tensorrt_llm")
"""Engines whose parsers take no shortened flags; Python's own does (`--tp` for `--tp-size`)."""
SHORT = {
    "vllm": {
        "-tp": "--tensor-parallel-size",
        "-dp": "--data-parallel-size",
        "-pp": "--pipeline-parallel-size",
        "-cc": "--compilation-config",
        "-ac": "--attention-config",
        "-sc": "--speculative-config",
        "-O": "--optimization-level",
    }
}
"""vLLM's short spellings: `engine/arg_utils.py`."""
_NUMBER = re.compile(r"-\d+(\.\d+)?$")
_LEVEL = re.compile(r"-O(\d)$")


class Given(msgspec.Struct, frozen=True):
    """One setting that a command line gives, and the words that do."""

    name: str
    value: Any
    words: str


class Flags(msgspec.Struct, frozen=True):
    """What a command line gives, and the flags that no catalogue knows."""

    given: tuple[Given, ...]
    unknown: tuple[str, ...]


def read_flags(engine: str, words: Sequence[str]) -> Flags:
    """Read the engine's own arguments; of a setting that is given twice the last value stands, as its parser has it."""
    known = catalogue(engine)
    given: dict[str, Given] = {}
    unknown: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        if not is_flag(word):
            if at == 0 and engine in _POSITIONAL:
                given[_POSITIONAL[engine]] = Given(
                    _POSITIONAL[engine], parse_value(known.settings[_POSITIONAL[engine]], word), word
                )
            at += 1
            continue
        flag, stands_with, attached = word.partition("=")
        if level := _LEVEL.fullmatch(flag):
            flag, stands_with, attached = "-O", "=", level[1]
        flag = SHORT.get(engine, {}).get(flag.partition(".")[0], flag.partition(".")[0]) + "".join(
            flag.partition(".")[1:]
        )
        rest = [attached] if stands_with else list(_values(words, at + 1))
        found, used = _one(known, flag, rest, attached=bool(stands_with))
        if found is None:
            unknown.append(flag)
            used = 0 if stands_with or not rest else 1
        for name, value in (found or {}).items():
            given.pop(name, None)
            given[name] = Given(name, value, word if not used else f"{flag} {' '.join(rest[:used])}"[:300])
        at += 1 + (0 if stands_with else used)
    return Flags(tuple(given.values()), tuple(dict.fromkeys(unknown)))


_POSITIONAL = {"vllm": "model"}
"""`vllm serve MODEL`."""


def is_flag(word: str) -> bool:
    """True for what begins an argument; a negative number does not."""
    return word.startswith("-") and len(word) > 1 and not _NUMBER.match(word)


def _values(words: Sequence[str], start: int) -> Iterator[str]:
    for word in words[start:]:
        if is_flag(word):
            return
        yield word


def _one(
    known: Catalogue, flag: str, rest: list[str], *, attached: bool
) -> tuple[dict[str, Any] | None, int]:
    """Settings by name of one flag, and how many words behind it are its values."""
    base, dotted, key = flag.partition(".")
    looked_up = _look_up(known, base)
    if looked_up is None:
        return None, 0
    name, stored = looked_up
    setting = known.settings[name]
    if dotted:
        return _dotted(known, setting, key, rest), min(1, len(rest))
    if stored is not None:
        return {name: stored}, 0
    if setting.type == "bool":
        says = rest[0].lower() if rest else ""
        if says in (*TRUE, *FALSE) and (attached or says in ("true", "false")):
            return {name: says in TRUE}, 1
        return {name: True}, 0
    if not rest:
        return {name: True}, 0  # a value may be left out: `--model-checksum`, `--enable-prefix-caching`
    if setting.type == "list" and not attached:
        return {name: parse_list(setting, rest)}, len(rest)
    if setting.type == "list":
        return {name: parse_list(setting, rest[:1])}, 1
    value = parse_value(setting, rest[0])
    return _with_keys(known, name, value), 1


def _look_up(known: Catalogue, flag: str) -> tuple[str, Any] | None:
    plain = flag.replace("_", "-")
    if plain in known.flags:
        return known.flags[plain]
    if plain.startswith("--no-"):
        negated = known.flags.get("--" + plain.removeprefix("--no-"))
        if negated is not None and known.settings[negated[0]].type == "bool":
            return negated[0], False
    if known.engine in NO_ABBREVIATION or not plain.startswith("--") or len(plain) < 4:
        return None
    longer = {entry for other, entry in known.flags.items() if other.startswith(plain) and _hashable(entry)}
    newest = {entry for entry in longer if known.settings[entry[0]].until is None} or longer
    return newest.pop() if len(newest) == 1 else None


def _hashable(entry: tuple[str, Any]) -> bool:
    return not isinstance(entry[1], list | dict)


def _dotted(known: Catalogue, setting: Setting, key: str, rest: list[str]) -> dict[str, Any]:
    """`--compilation-config.pass-config.fuse-norm-quant true` as the catalogue's own key, or inside the argument."""
    parts = [part.replace("-", "_").rstrip("+") for part in key.split(".") if part][:6]
    name = ".".join((setting.name, *parts))
    text = rest[0] if rest else "true"
    inner = known.settings.get(name)
    if inner is not None:
        return _with_keys(known, name, parse_value(inner, text))
    try:
        value = clean(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError):
        value = clean(text)
    for part in reversed(parts):
        value = {part: value}
    return {setting.name: value}


def _with_keys(known: Catalogue, name: str, value: Any) -> dict[str, Any]:
    """A JSON value, and beside it every key of it that is a setting of its own."""
    found = {name: value}
    if isinstance(value, dict):
        for key, inner in value.items():
            path = f"{name}.{str(key).replace('-', '_')}"
            if path in known.settings:
                found |= _with_keys(known, path, inner)
    return found
