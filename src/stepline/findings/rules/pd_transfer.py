"""C504 pd-transfer.

What it means:
    Prefill and decode run on different servers, and requests wait for their KV cache to be moved between the two.

Why it costs:
    A request decodes only once its cache has arrived. A slow path makes first tokens late and leaves the decode server
    with a small batch while the prefill server has nothing left to compute.

Evidence needed:
    Batch lines of the prefill or the decode server that count the requests in transfer, or the time of single
    transfers. A rate in bytes a second says nothing alone: little may have had to be sent.

How it decides:
    Fired when requests in transfer are at least four times those of a prefill batch, when more of them are in transfer
    than decode, or when the median transfer of a log takes half a second. Suspected: a decode server without room for
    one more request holds transfers up in the same way.

What would prove it wrong:
    Requests in transfer stay as many with a faster path between the servers, or the decode server's pool is full.

What to try:
    See that the transfer library uses RDMA and the intended network cards (a build without it falls back to TCP);
    more transfer threads; prefill and decode on the same host or switch.

References:
    ai-dynamo/dynamo pull request 1314 (1,800 ms without RDMA, 0.16 ms with it); sgl-project/sglang issue 5450
"""

import statistics

from stepline import units
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.findings.outcome import (
    CannotTell,
    Clear,
    Fired,
    Observation,
    Outcome,
    Proof,
    Rival,
    Rule,
    RuledOut,
    Try,
)
from stepline.model.picture.picture import Picture
from stepline.model.signs.batch_limit import T as LIMIT
from stepline.threshold import Threshold


class T:
    """Thresholds of this rule."""

    batches = Threshold(
        4.0,
        "requests in transfer over a prefill batch",
        why="While a batch is computed the one before it is sent, so one or two are on their way "
        "where sending is no slower than computing.",
    )
    slow_ms = Threshold(
        500.0,
        "ms",
        why="A transfer this long: a link of 200 Gbit/s, the slowest that disaggregation is built "
        "for, moves 12 GB in it.",
        source="arithmetic: 12 GB are the cache of 95,000 tokens of an 8B model (131 kB each), more "
        "than prompts hold",
    )


def check(picture: Picture) -> Outcome:
    """Decide whether requests wait for their cache to be moved."""
    run = picture.run
    waiting = _in_transfer(run)
    slow = _slow_transfers(run)
    evidence = (*waiting, *slow)
    if evidence:
        return _fired(evidence, run, by_time=not waiting)
    timed = [report.duration_ms for report in run.transfers if report.duration_ms is not None]
    if timed:
        return Clear(f"{len(timed)} transfers of KV cache took {units.ms(statistics.median(timed))} (median)")
    if _counted(run):
        return Clear("few requests are in transfer beside those that are computed")
    if run.transfers or run.server.disaggregation is not None:
        return CannotTell(
            "how many requests wait for their cache, or how long a transfer takes",
            "save the logs of the prefill and the decode server under load",
        )
    return Clear("nothing speaks of prefill and decode on different servers")


def _counted(run: Run) -> bool:
    """True when lines count the requests in transfer."""
    return any(report.inflight is not None for report in run.prefills) or any(
        report.transferring is not None for report in run.decodes
    )


def _in_transfer(run: Run) -> tuple[Observation, ...]:
    """What lines of the prefill server, then of the decode server say of too many requests in transfer."""
    found = []
    sent = [report for report in run.prefills if report.inflight is not None]
    if sent:
        inflight = statistics.fmean(report.inflight or 0 for report in sent)
        batch = statistics.fmean(report.new_sequences / report.batches for report in sent)
        if inflight >= T.batches * max(1.0, batch):
            found.append(
                Observation(
                    f"{inflight:.3g} requests are in transfer while a prefill batch takes {batch:.3g} new ones",
                    sent[0].origin,
                )
            )
    taken = [report for report in run.decodes if report.transferring is not None]
    if taken:
        coming = statistics.fmean(report.transferring or 0 for report in taken)
        running = statistics.fmean(report.running for report in taken)
        if coming > max(1.0, running):
            found.append(
                Observation(
                    f"{coming:.3g} requests wait for their cache while {running:.3g} decode", taken[0].origin
                )
            )
    return tuple(found)


def _slow_transfers(run: Run) -> tuple[Observation, ...]:
    """The slowest file's median transfer, where it is slow, and the fastest file's beside it."""
    by_file: dict[str, list[float]] = {}
    for report in run.transfers:
        if report.duration_ms is not None:
            by_file.setdefault(report.origin.file, []).append(report.duration_ms)
    medians = sorted((statistics.median(times), file) for file, times in by_file.items())
    if not medians or medians[-1][0] < T.slow_ms:
        return ()
    told = [f"a transfer takes {units.ms(ms)} (median of {len(by_file[file])})" for ms, file in medians]
    ends = (medians[-1], medians[0])[: len(medians)]
    return tuple(Observation(told[medians.index(end)], Origin(end[1])) for end in ends)


def _rates(run: Run) -> tuple[Observation, ...]:
    """What the transfer engines moved meanwhile."""
    rates = [report for report in run.transfers if report.bytes_s is not None]
    if not rates:
        return ()
    low, high = (units.size(pick(report.bytes_s or 0.0 for report in rates)) for pick in (min, max))
    return (
        Observation(f"{len(rates)} reports of transfer engines: {low} to {high} a second", rates[0].origin),
    )


def _fired(evidence: tuple[Observation, ...], run: Run, *, by_time: bool) -> Fired:
    pool = max((report.pool_usage for report in run.decodes if report.pool_usage is not None), default=None)
    room = pool is not None and pool < LIMIT.pool_full
    full = "a decode server without room"
    return Fired(
        status="suspected",
        headline="a transfer of KV cache takes longer than a fast link needs for any prompt"
        if by_time
        else "requests wait for their KV cache to be moved between servers",
        evidence=(*evidence, *_rates(run)),
        ruled_out=(RuledOut(full, f"its pool is at most {units.percent(pool or 0.0)} full"),) if room else (),
        rivals=() if room else (Rival(full, "token usage and #prealloc-req in the decode server's log"),),
        tries=(
            Try("check that transfers use RDMA and the intended network cards", "none"),
            Try("give the transfer engine more threads or queues", "a restart of both servers"),
        ),
        proof=Proof("diagnose the logs of both servers, before and after the path is changed", 60.0),
    )


RULE = Rule("C504", "pd-transfer", "0.1.0", check)
