"""Documents of indented `name: value` lines as nested objects: YAML reports and what `nvidia-smi -q` prints."""

import re
from collections.abc import Sequence
from typing import Any

_LINE = re.compile(
    r"^(?P<indent> *)(?P<dash>- )?(?P<name>[^:#\n][^:\n]{0,80}?)\s*:(?:\s+(?P<value>.*?))?\s*$"
)
MIN_LINES = 6
OPENING = 100
SHARE = 0.9
"""Share of the lines that are pairs from which a text is such a document."""


def parse_indented(lines: Sequence[str]) -> dict[str, Any] | None:
    """The document; None for a text that is none. Lists are passed over: none of these reports needs them."""
    used = [line.rstrip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not any(line.startswith(" ") for line in used[:OPENING]) or not all(":" in line for line in used[:3]):
        return None
    matches = [_LINE.match(line) for line in used]
    told = [found for found in matches if found]
    if len(told) < MIN_LINES or len(told) < SHARE * len(used) or not any(found["indent"] for found in told):
        return None
    root: dict[str, Any] = {}
    above: list[tuple[int, dict[str, Any]]] = [(-1, root)]
    for found in told:
        if found["dash"]:
            continue
        indent = len(found["indent"])
        while above[-1][0] >= indent:
            above.pop()
        name, value = found["name"].strip().strip("\"'"), found["value"]
        if value in (None, "", "{}"):
            inner: dict[str, Any] = {}
            above[-1][1][name] = inner
            above.append((indent, inner))
        else:
            above[-1][1][name] = _scalar(str(value))
    return root


def _scalar(text: str) -> Any:
    text = text.strip("\"'")
    if text in ("null", "~", "N/A"):
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text
