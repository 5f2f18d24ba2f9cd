"""What stands before an SGLang message: time and rank tags (`srt/utils/common.py:configure_logger`).

`[2026-11-29 16:31:54 DP3 TP3] …` is the plain form. `SGLANG_LOG_MS=1` adds milliseconds, Ray puts
`(Actor pid=N, ip=…)` before, launchers write `2025-10-20 03:02:22 INFO 31223 [DP3 TP3 EP3 file.py:222]`, and
collectors put their own stamp first. So the last stamp before the message counts, and rank tags in any order.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")
RANK = re.compile(r"\b(DP|PP)(\d+)\b")
MAX_PREFIX = 400
"""No prefix is longer; what stands further back belongs to another line that lost its end."""


class Prefix(msgspec.Struct, frozen=True):
    """Seconds since the epoch in the log's own time zone, and the reporting rank; None where not written."""

    time_s: float | None
    dp: int | None
    pp: int | None


@lru_cache(maxsize=512)
def parse_prefix(text: str) -> Prefix:
    """Read time and rank tags from whatever precedes a message."""
    text = text[-MAX_PREFIX:]
    stamp = None
    for stamp in _STAMP.finditer(text):  # noqa: B007  # the last one is wanted
        pass
    ranks = {name: int(number[:9]) for name, number in RANK.findall(text)}
    return Prefix(_seconds(stamp) if stamp else None, ranks.get("DP"), ranks.get("PP"))


def _seconds(stamp: re.Match[str]) -> float | None:
    day = _day(stamp[1])
    if day is None:
        return None
    fraction = float(f"0.{stamp[5]}") if stamp[5] else 0.0
    return day + int(stamp[2]) * 3600 + int(stamp[3]) * 60 + int(stamp[4]) + fraction


@lru_cache(maxsize=64)
def _day(date: str) -> float | None:
    try:
        return datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
