"""Reads what Python's repr wrote: settings dumps such as `Name(k='v', nested=Other(x=[1, 2]))` or `{'k': v}`.

`ast.literal_eval` knows no nested calls, enum values or lines that were cut, all of which occur in start-up
dumps. Calls become dicts of their keywords, names and anything strange become plain text, and a text that
breaks off yields what stands before the break.
"""

import re
from typing import Any

_BARE = re.compile(r"[^,()\[\]{}'\"=]*")
_STRING = re.compile(r"[bru]{0,2}('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")
_KEYWORD = re.compile(r"\s*([A-Za-z_][\w.]*)\s*=(?!=)")
_CALL = re.compile(r"[A-Za-z_][\w.]*\(")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_WORDS = {"None": None, "True": True, "False": False, "null": None, "true": True, "false": False}
MAX_DEPTH = 20
MAX_ENUM = 200


def parse_repr(text: str, start: int = 0) -> Any:
    """The value that begins at `start`; dicts for calls and mappings, lists for sequences, else scalars."""
    return _value(text, start, 0)[0]


def parse_keywords(text: str, start: int = 0) -> dict[str, Any]:
    """`k='v', k2=3` up to the end of the text or a closing bracket."""
    found, _ = _items(text, start, ")", 0)
    return found if isinstance(found, dict) else {}


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    while at < len(text) and text[at].isspace():
        at += 1
    if at >= len(text) or depth > MAX_DEPTH:
        return None, len(text)
    if string := _STRING.match(text, at):
        return string[1][1:-1].replace("\\'", "'").replace("\\\\", "\\"), string.end()
    if text[at] in _CLOSING:
        return _items(text, at + 1, _CLOSING[text[at]], depth + 1)
    if call := _CALL.match(text, at):
        return _items(text, call.end(), ")", depth + 1)
    return _bare(text, at)


def _bare(text: str, at: int) -> tuple[Any, int]:
    end = at
    while True:
        bare = _BARE.match(text, end)
        end = bare.end() if bare else end
        opened = text.startswith("<", at) and end - at < MAX_ENUM
        if opened and ">" not in text[at:end] and end < len(text):
            end += 1  # an enum such as <Kind.A: 'a'>: its quotes belong to it
            continue
        break
    word = text[at:end].strip()
    if word in _WORDS:
        return _WORDS[word], end
    for kind in (int, float):
        try:
            return kind(word), end
        except ValueError:
            continue
    return word, max(end, at + 1)


def _items(text: str, at: int, closing: str, depth: int) -> tuple[Any, int]:
    """Items up to `closing`: a dict when they have keys, else a list."""
    named: dict[str, Any] = {}
    plain: list[Any] = []
    while at < len(text):
        while at < len(text) and (text[at].isspace() or text[at] == ","):
            at += 1
        if at >= len(text) or text[at] == closing:
            break
        if keyword := _KEYWORD.match(text, at):
            named[keyword[1]], at = _value(text, keyword.end(), depth)
            continue
        value, after = _item(text, at, closing, depth)
        if isinstance(value, tuple):
            named[str(value[0])] = value[1]
        else:
            plain.append(value)
        at = max(after, at + 1)
    empty_mapping = closing == "}" and not plain
    return (named if named or empty_mapping else plain), at + 1


def _item(text: str, at: int, closing: str, depth: int) -> tuple[Any, int]:
    """A plain value, or a (key, value) tuple in a mapping."""
    if closing == "}" and (key := _STRING.match(text, at)):
        colon = key.end()
        while colon < len(text) and text[colon].isspace():
            colon += 1
        if text[colon : colon + 1] == ":":
            value, at = _value(text, colon + 1, depth)
            return (key[1][1:-1], value), at
    return _value(text, at, depth)
