"""One clock for logs that print local time, perhaps without a year, and clients that tell the epoch.

Zones are never assumed: the shift is the one under which the times that both sides report fall together.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from stepline.sources.runs.fragment import NO_YEAR_S, Span

QUARTER_S = 900
WIDEST_S = 15 * 3600
"""Between any zone and UTC, and a quarter of slack."""
SLACK_S = 120.0
"""A client may begin before the first line that a log prints of it, and end after the last."""


def in_year(span: Span, year: int | None) -> Span:
    """The span in a year, where its log printed none."""
    if year is None or not NO_YEAR_S[0] <= span.first_s < NO_YEAR_S[1]:
        return span
    return Span(*(_moved(time, year) for time in (span.first_s, span.last_s)))


def year_of(spans: Sequence[Span]) -> int | None:
    """The year that those who know it report."""
    told = [span.first_s for span in spans if span.first_s >= NO_YEAR_S[1]]
    return datetime.fromtimestamp(min(told), UTC).year if told else None


def zone_shift(logs: Sequence[Span], clients: Sequence[Span]) -> float | None:
    """Seconds to add to the logs' clock so that most of the clients' times lie in a log; None where none does.

    Of several the smallest: the clocks agree unless the evidence says otherwise.
    """
    best, found = 0.0, None
    for shift in sorted(range(-WIDEST_S, WIDEST_S + 1, QUARTER_S), key=abs):
        covered = sum(max((share(moved(log, shift), one) for log in logs), default=0.0) for one in clients)
        if covered > best + 1e-6:
            best, found = covered, float(shift)
    return found


def moved(span: Span, shift_s: float) -> Span:
    """The span by a clock that is so much ahead."""
    return Span(span.first_s + shift_s, span.last_s + shift_s)


def share(whole: Span, part: Span) -> float:
    """Which share of a part lies in the whole; a moment lies in it or not."""
    first, last = whole.first_s - SLACK_S, whole.last_s + SLACK_S
    length = part.last_s - part.first_s
    overlap = min(last, part.last_s) - max(first, part.first_s)
    if overlap < 0:
        return 0.0
    return 1.0 if length <= 0 else overlap / length


def apart_s(one: Span, other: Span) -> float:
    """Seconds between two spans; zero where they touch."""
    return max(0.0, one.first_s - other.last_s, other.first_s - one.last_s)


def _moved(time_s: float, year: int) -> float:
    told = datetime.fromtimestamp(time_s, UTC)
    try:
        return told.replace(year=year).timestamp()
    except ValueError:  # 29 February
        return time_s
