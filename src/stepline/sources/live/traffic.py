"""Does anybody else use the server? Seen before any load, from the engine's own counts."""

import time
from typing import NamedTuple

from stepline.evidence.metrics import EngineMetrics, growth
from stepline.evidence.run import Run
from stepline.sources.client_file import METRICS_FILE
from stepline.sources.http import Unreachable
from stepline.sources.live.session import Session
from stepline.sources.read import read_one_run as read


class Traffic(NamedTuple):
    """`others` says what was seen of other requests; None when the server was seen to be idle or says nothing."""

    others: str | None
    known: bool
    """False: nothing the server offers tells, so its idleness is only assumed."""


def watch(session: Session, seconds: float) -> Traffic:
    """Look on for some seconds, without sending anything but reads of the engine's counts."""
    deadline = time.monotonic() + seconds
    busy: int | None = None
    while True:
        if session.found.busy is not None:
            try:
                now = session.found.busy(session.http)
            except Unreachable:
                now = None
            busy = busy if now is None else max(busy or 0, now)
        left = deadline - time.monotonic()
        if left <= 0:
            break
        time.sleep(min(1.0, left))
    session.sync()
    if busy:
        return Traffic(f"{busy} requests of others run on this server", known=True)
    scrapes = _scrapes(session)
    if len(scrapes) < 2:
        return Traffic(None, known=busy is not None)
    return _judge(scrapes)


def _scrapes(session: Session) -> tuple[EngineMetrics, ...]:
    path = session.folder / METRICS_FILE
    run = read([path]) if path.is_file() else Run()
    return run.metrics


def _judge(scrapes: tuple[EngineMetrics, ...]) -> Traffic:
    seen = max((scrape.running or 0) + (scrape.queued or 0) for scrape in scrapes)
    if seen:
        return Traffic(f"{seen:.0f} requests of others run on this server", known=True)
    grown = growth(scrapes[0], scrapes[-1])
    made = None if grown is None else grown.generated_tokens
    if made:
        return Traffic(f"{made:.0f} tokens were made for others while looking on", known=True)
    return Traffic(None, known=scrapes[-1].running is not None)
