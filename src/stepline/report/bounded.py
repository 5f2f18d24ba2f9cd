"""A result that is safe to draw: every string short, printable and on one line, every list bounded.

Names of models, kernels and files come from servers and files that nobody vouches for: they may be ten megabytes
long, move a terminal's cursor, or turn the reading direction round.
"""

import re
from typing import Any, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)
TEXT = 500
"""Characters of one string; the longest sentence of stepline's own over all labelled cases has 167."""
ITEMS = 120
"""Entries of one list: the bins of a timeline."""
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]+")


def bounded(result: T, text: int = TEXT) -> T:
    """The same result with its lists cut to `ITEMS` entries and its strings to `text` characters."""
    return msgspec.convert(_cut(msgspec.to_builtins(result), text), type(result))


def _cut(value: Any, text: int) -> Any:
    if isinstance(value, str):
        shown = _UNSEEN.sub(" ", value[:text])
        return f"{shown}…" if len(value) > text else shown
    if isinstance(value, dict):
        return {_cut(key, text): _cut(content, text) for key, content in list(value.items())[:ITEMS]}
    if isinstance(value, list | tuple):
        kept = [_cut(item, text) for item in value[:ITEMS]]
        if len(value) > ITEMS and all(isinstance(item, str) for item in value):
            kept[-1] = f"and {len(value) - ITEMS + 1} more"
        return kept
    return value
