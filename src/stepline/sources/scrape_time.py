"""When a scrape was taken: from what is written in it or in its name, never from the file system."""

import re
from datetime import UTC, datetime

_UNIX = re.compile(r"(?<![\d.])(1\d{9}(?:\.\d+)?|1\d{12})(?![\d])")
_DAY = r"(20\d\d)-?([01]\d)-?([0-3]\d)"
_ISO = re.compile(_DAY + r"[T _-]([0-2]\d)[:_-]?([0-5]\d)[:_-]?([0-5]\d)(?:\.(\d{1,9}))?")
_NAME = re.compile(r"(?i)time|scrape|date|\bts\b|\bat\b|captured")


def from_name(name: str) -> float | None:
    """Seconds since the epoch from a file name such as `metrics_1764433914.txt`."""
    return _moment(name.rsplit("/", 1)[-1])


def from_comment(line: str) -> float | None:
    """Seconds since the epoch from a comment that says when; HELP and TYPE lines never do."""
    if not line.startswith("#") or line.startswith(("# HELP", "# TYPE", "# EOF", "# UNIT")):
        return None
    bare = line.strip("# \t=-")
    return _moment(line) if _NAME.search(line) or _ISO.match(bare) or _UNIX.match(bare) else None


def _moment(text: str) -> float | None:
    if iso := _ISO.search(text):
        try:
            parts = [int(iso[n]) for n in range(1, 7)]
            moment = datetime(*parts[:6], tzinfo=UTC)  # type: ignore[misc,arg-type]
        except ValueError:
            return None
        return moment.timestamp() + (float(f"0.{iso[7]}") if iso[7] else 0.0)
    if unix := _UNIX.search(text):
        value = float(unix[1])
        return value / 1000 if value > 1e11 else value  # 1e11 s is the year 5138: it is milliseconds
    return None
