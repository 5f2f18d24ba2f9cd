"""Start-up remarks about fallbacks and disabled features, gathered once each. A remark is never a cause."""

import re
from typing import Literal

import msgspec

from stepline.evidence.origin import Origin
from stepline.evidence.scheduler import Notice
from stepline.sources.redact import excerpt

Topic = Literal["fallback", "untuned", "disabled", "slow", "other"]

MAX_REMARKS = 200
"""A server makes a few dozen; more is a flood, of which the first are enough."""
_REMARK = re.compile(
    r"fall(?:ing|s|en)? ?back|sub-?optimal|disabled because|is disabled|disabling|not available|\bslow\b",
    re.IGNORECASE,
)
HINTS = ("back", "Back", "BACK", "ptimal", "isabl", "DISABL", "not available", "slow", "Slow", "SLOW")
"""A line without any of these is no remark."""
_PREFIX = re.compile(
    r"^(?:\([^)]*\)\s*)*(?:\[?\d{4}-\d\d-\d\d[^\]]*\]\s*|(?:INFO|WARNING|ERROR|DEBUG)\b[^\]]*\]\s*)?"
)


class Remarks:
    """Distinct remarks of one log in order of first appearance, each with how often it came."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._seen: dict[str, Notice] = {}
        self._repeats: dict[str, int] = {}

    def feed(self, number: int, line: str) -> None:
        """Keep the line if it reads like a remark."""
        if any(hint in line for hint in HINTS) and _REMARK.search(line):
            self.add(number, line, _topic(line))

    def add(self, number: int, line: str, topic: Topic) -> None:
        """Keep the line as a remark on `topic`."""
        text = excerpt(_PREFIX.sub("", line, count=1))
        key = text.split("Config file")[0][:80]
        if key in self._seen:
            self._repeats[key] += 1
        elif len(self._seen) < MAX_REMARKS:
            self._seen[key] = Notice(origin=Origin(self._file, number), text=text, topic=topic)
            self._repeats[key] = 1

    def finish(self) -> tuple[Notice, ...]:
        """All remarks."""
        return tuple(
            msgspec.structs.replace(notice, repeats=self._repeats[key]) for key, notice in self._seen.items()
        )


def _topic(line: str) -> Topic:
    lowered = line.lower()
    if "optimal" in lowered:
        return "untuned"
    if re.search(r"fall(?:ing|s|en)? ?back", lowered):
        return "fallback"
    if "disabl" in lowered:
        return "disabled"
    return "slow" if "slow" in lowered else "other"
