"""A setting's text as the value that its type asks for."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from stepline.facts.settings import Setting
from stepline.sources.redact import redact

TRUE, FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
MAX_TEXT = 8000
"""Characters of one value that are kept; a list of capture sizes has some hundreds."""
_SECRET = re.compile(r"(?:^|_)(?:api_?keys?|key|token|password|secret|authtoken)(?:$|_b$)", re.IGNORECASE)
_HUMAN = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG])")
_POWER = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
"""Both engines that read such numbers count lower case in thousands and upper case in 1,024s."""


def parse_value(setting: Setting, text: str) -> Any:
    """The value that a command line's or an environment's text stands for; the text where it fits no type."""
    if is_secret(setting.name):
        return "[redacted]"
    text = text.strip()[:MAX_TEXT]
    if setting.type == "bool" and text.lower() in (*TRUE, *FALSE):
        return text.lower() in TRUE
    if setting.type in ("int", "float"):
        return _number(text)
    if setting.type in ("json", "list") or text[:1] in "{[":
        try:
            return clean(msgspec.json.decode(text))
        except (msgspec.DecodeError, RecursionError):
            return _number(text) if setting.type == "list" else redact(text)
    return None if text in ("None", "null") else redact(text)


def parse_list(setting: Setting, words: Sequence[str]) -> Any:
    """Several words of one argument: `--cuda-graph-bs 1 2 4`; one JSON word stands for the list it holds."""
    if len(words) == 1 and words[0][:1] in "{[":
        return parse_value(setting, words[0])
    if is_secret(setting.name):
        return ["[redacted]"]
    parts = [part for word in words for part in word.split(",") if part]
    return [_number(part.strip()[:MAX_TEXT]) for part in parts]


def _number(text: str) -> Any:
    human = _HUMAN.fullmatch(text)
    if human:
        return int(float(human[1]) * _POWER[human[2]])
    if re.fullmatch(r"[-+]?\d{1,18}", text):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return None if text in ("None", "null") else redact(text)
    return number if abs(number) < float("inf") else redact(text)


def is_secret(name: str) -> bool:
    """True for a setting whose value nobody may keep."""
    return bool(_SECRET.search(name.rpartition(".")[2]))


def clean(value: Any, depth: int = 0) -> Any:
    """A JSON value without keys and tokens, cut where it is deep or long."""
    if isinstance(value, str):
        return redact(value[:MAX_TEXT])
    if isinstance(value, dict):
        if depth > 8:
            return {}
        return {
            str(name): "[redacted]" if is_secret(str(name)) and inner else clean(inner, depth + 1)
            for name, inner in list(value.items())[:500]
        }
    if isinstance(value, list | tuple):
        return [clean(item, depth + 1) for item in value[:2000]] if depth <= 8 else []
    return value if value is None or isinstance(value, bool | int | float) else redact(str(value)[:MAX_TEXT])
