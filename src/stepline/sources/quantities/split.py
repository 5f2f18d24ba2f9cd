"""Cuts the name of a measurement into words: whatever separators, case, brackets and signs somebody used."""

import re
import unicodedata
from functools import lru_cache

_MARKUP = re.compile(r"<[^<>]{1,40}>|[*`~]+|\\")
_UNITS = re.compile(r"(?<![A-Za-z])([KMG]i?B|[kMG]?Hz|GBps)(?![A-Za-z])")
"""Units whose capitals are no boundary between words."""
_CAMEL = (re.compile(r"(?<=[a-z][a-z])(?=[A-Z])"), re.compile(r"(?<=[A-Z])(?=[A-Z][a-z]{2})"))
_SIGNS = (
    (re.compile(r"(?<=\d)[.,](?=\d)"), "p"),
    (re.compile(r"%"), " pct "),
    (re.compile(r"#"), " num "),
    (re.compile(r"[µμ](?=s\b)"), "u"),
    (re.compile(r"°\s*C\b"), " celsius "),
    (re.compile(r"(?<=[A-Za-z\d)\]])\s*/\s*(?=[A-Za-z(\[])"), " per "),
    (re.compile(r"@"), " at "),
)
MAX_NAME = 200
"""Characters of a name that are looked at."""


@lru_cache(maxsize=8192)
def split(name: str) -> tuple[str, ...]:
    """The words of a name in order, lower case: `Output tok/s` is `output tok per s`, `P99.9 TTFT` `p99p9 ttft`."""
    text = unicodedata.normalize("NFKC", name[:MAX_NAME])
    text = _MARKUP.sub(" ", text)
    text = _UNITS.sub(lambda unit: f" {unit[1].lower()} ", text)
    for pattern, word in _SIGNS:
        text = pattern.sub(word, text)
    for boundary in _CAMEL:
        text = boundary.sub(" ", text)
    return tuple(re.findall(r"[a-z0-9]+", text.lower()))
