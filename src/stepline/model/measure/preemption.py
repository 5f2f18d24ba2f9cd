"""Requests thrown out of a full KV pool, as the engine says it or as its lines show it."""

import math
from itertools import pairwise

import msgspec

from stepline.evidence.load import LoadLevel
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport
from stepline.model.measure.counters import over_recording
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    repeated = Threshold(
        0.1,
        "share of the prefill",
        why="Repeated prefill from which retractions themselves cost: below, the pool's size is what costs.",
        source="34 retractions among 145 requests of an H200 server repeated 20 % of a prefill that "
        "took 2 % of the time",
    )
    full = Threshold(
        0.95,
        "share of the pool",
        why="From here a request that grows by a page may need another's room.",
    )
    cliff = Threshold(
        2.0,
        "times the growth of the batch",
        why="A jump of the time per token that no kernel makes for one more request.",
    )
    next_level = Threshold(
        1.5,
        "times the batch",
        why="Levels further apart are no neighbours: a step may double between them for other reasons.",
    )
    lost_pool = Threshold(
        0.99,
        "share of the pool",
        why="The pool was full when a request went missing, though the log does not say that it was "
        "thrown out.",
    )
    pending = Threshold(
        10,
        "pending over prefilled tokens",
        why="A forward that leaves so many prompt tokens waiting repeats a whole request.",
    )


class Retractions(msgspec.Struct, frozen=True):
    """Requests that the engine says it retracted (or preempted) in this run."""

    requests: float
    origin: Origin | None


class LostRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A full pool, then fewer running requests while a long prefill is pending."""

    running_before: int
    running_after: int
    pending_tokens: int
    full_at: Origin
    prefill_at: Origin


def retractions(run: Run) -> Retractions | None:
    """What lines, counters or fields say, whichever counts most; None when none of them does."""
    events = [event for event in run.events if event.kind == "retraction"]
    by_lines = sum(event.amount or 1.0 for event in events)
    counted = over_recording(run)
    by_counter = 0.0 if counted is None else counted.retracted_requests or 0.0
    by_field = float(max((report.retracted or 0 for report in run.decodes), default=0))
    requests = max(by_lines, by_counter, by_field)
    return Retractions(requests, events[0].origin if events else None) if requests else None


def repeated_share(run: Run, context_tokens: float | None, prefill_share: float | None) -> float | None:
    """Share of the engine's time that goes into prefilling retracted requests again; None when it cannot be told.

    A retracted request computes its whole context again: retractions × live context, of all tokens prefilled, of the
    time that prefill takes.
    """
    seen = retractions(run)
    counted = over_recording(run)
    prefilled = 0.0 if counted is None else counted.prefill_tokens or 0.0
    prefilled = prefilled or float(sum(report.new_tokens for report in run.prefills))
    if seen is None or context_tokens is None or prefill_share is None or not prefilled:
        return None
    return min(1.0, seen.requests * context_tokens / prefilled) * prefill_share


def lost_or_fell(run: Run) -> bool:
    """True when a full pool lost a request without a word, or the time per token jumped as it filled.

    Where the engine reports retractions, their cost is told and nothing needs to be inferred.
    """
    if retractions(run) is not None:
        return False
    return lost_request(run) is not None or find_cliff(run) is not None


class Cliff(msgspec.Struct, frozen=True):
    """Two neighbouring load levels between which the pool filled and the time per token jumped."""

    before: LoadLevel
    after: LoadLevel


def find_cliff(run: Run) -> Cliff | None:
    """The first such pair; running requests must have been thrown out between them."""
    filled = [
        level for level in run.levels if level.pool_usage is not None and level.tpot_ms and level.running
    ]
    for before, after in pairwise(filled):
        more = (after.running or 0.0) / (before.running or 1.0)
        slower = (after.tpot_ms or 0.0) / (before.tpot_ms or 1.0)
        fills = (before.pool_usage or 0.0) < T.full <= (after.pool_usage or 0.0)
        if fills and more <= T.next_level and slower >= T.cliff * more:
            return Cliff(before, after)
    return None


def lost_request(run: Run) -> LostRequest | None:
    """The first sign of a retraction that the log at hand does not mention; excerpts often miss the line itself."""
    for full in run.decodes:
        if full.pool_usage is None or full.pool_usage < T.lost_pool:
            continue
        for prefill in run.prefills:
            if prefill.seq < full.seq or prefill.running is None or prefill.running >= full.running:
                continue
            pending = prefill.pending_tokens or 0
            if T.pending * prefill.new_tokens < pending <= _most_pending(full, prefill.running):
                return LostRequest(
                    running_before=full.running,
                    running_after=prefill.running,
                    pending_tokens=pending,
                    full_at=full.origin,
                    prefill_at=prefill.origin,
                )
    return None


def _most_pending(full: DecodeReport, running: int) -> float:
    """Tokens that those no longer running may have to compute again; more than that are new prompts.

    Twice their share of the pool, since contexts differ; without bound where the line does not count tokens.
    """
    if full.pool_tokens is None:
        return math.inf
    return 2 * full.pool_tokens * (full.running - running) / full.running
