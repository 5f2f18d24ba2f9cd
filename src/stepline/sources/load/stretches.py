"""Stretches of constant batch in which no prompt can have been computed: there tokens over time give a step."""

from collections.abc import Iterator, Sequence

import numpy as np

from stepline.evidence.origin import Origin
from stepline.evidence.scheduler import DecodeReport
from stepline.sources.load.stream_counts import MIN_ROUNDS, Change, Floats, Seen, changes

PROMPT_TIMES = 2.0
"""Beside decode steps a prompt may take longer than alone: up to twice, as its pieces share steps with them."""
SILENCE_TIMES = 8.0
"""One stream silent this many times as long as another ever was: the engine put it off, and computes its cache
anew. Streams that decode together are told of the same steps, late by a few tokens where text is held back."""


def stretches(all_seen: Sequence[Seen], end: float, unix_s: float, file: str) -> tuple[DecodeReport, ...]:
    """Usable stretches in order.

    Between two changes of what is in flight the decoding streams are the same. Nobody's prompt is computed
    there if every request in flight decodes. Where some wait, a prompt would end with a first token: none is
    computed in a stretch that ends by a finish and lasted longer than a prompt takes, which is at most the
    shortest time to first token of the level, or `PROMPT_TIMES` that beside decode steps.

    Args:
        all_seen: the level's requests.
        end: when the level ended, on the records' clock.
        unix_s: Unix time less that clock.
        file: named in the origins.
    """
    prompt_s = min(
        (s.first - s.record.sent_s for s in all_seen if s.first is not None and s.record.sent_s is not None),
        default=0.0,
    )
    all_times, all_counts = _merged(all_seen)
    found: list[DecodeReport] = []
    for start, stop, inside, waiting in _between(changes(all_seen), end):
        if waiting and not (stop.by_finish and stop.time - start.time > PROMPT_TIMES * prompt_s):
            continue
        if start.unsure or any(seen.record.end == "miscounted" for seen in inside):
            continue
        low, high = np.searchsorted(all_times, (start.time, stop.time), side="right")
        if not inside or all_counts[high] - all_counts[low] < MIN_ROUNDS * len(inside):
            continue
        tok_s = _rate(inside, start.time, stop.time)
        if tok_s is not None:
            number = len(found)
            found.append(
                DecodeReport(
                    seq=number,
                    origin=Origin(file, number + 1),
                    time_s=unix_s + stop.time,
                    running=len(inside),
                    queued=waiting,
                    pool_tokens=_live_tokens(inside, (start.time + stop.time) / 2),
                    tok_s=tok_s,
                    instrument="interval",
                    prefill_tok_s=0.0,
                )
            )
    return tuple(found)


class _Edge:
    """Where a stretch starts or stops."""

    __slots__ = ("by_finish", "time", "unsure")

    def __init__(self, time: float, change: Change | None) -> None:
        self.time = time
        left = change is not None and change.step == "leave"
        ended = change.seen.record.end if change is not None else "cut"
        self.by_finish = left and ended == "ok" and change is not None and change.seen.decodes
        # A request that failed may go on in the server for a while, unseen.
        self.unsure = left and ended not in ("ok", "cut")


def _between(points: Sequence[Change], end: float) -> Iterator[tuple[_Edge, _Edge, list[Seen], int]]:
    """Each time between two changes: its edges, who decodes, and how many wait for their first token."""
    decoding: dict[int, Seen] = {}
    waiting = 0
    previous: _Edge | None = None
    for change in points:
        edge = _Edge(change.time, change)
        if previous is not None and change.time > previous.time:
            yield previous, edge, list(decoding.values()), waiting
        if change.step == "send":
            waiting += 1
        elif change.step == "first":
            waiting -= 1
            decoding[id(change.seen)] = change.seen
        elif change.seen.decodes:
            decoding.pop(id(change.seen))
        else:
            waiting -= 1
        previous = edge
    if previous is not None and end > previous.time:
        yield previous, _Edge(end, None), list(decoding.values()), waiting


def _merged(all_seen: Sequence[Seen]) -> tuple[Floats, Floats]:
    """All chunk times in order, and the tokens before each and at the end."""
    if not all_seen:
        return np.empty(0), np.zeros(1)
    times = np.concatenate([seen.times for seen in all_seen])
    order = np.argsort(times, kind="stable")
    tokens = np.concatenate([seen.tokens for seen in all_seen])[order]
    return times[order], np.concatenate([[0.0], np.cumsum(tokens)])


def _live_tokens(inside: Sequence[Seen], moment: float) -> int | None:
    """Prompt and answered tokens of the decoding streams at a moment; None where a prompt's length is not known."""
    prompts = [seen.record.prompt_tokens for seen in inside]
    if any(tokens is None for tokens in prompts):
        return None
    answered = sum(float(seen.tokens[: np.searchsorted(seen.times, moment)].sum()) for seen in inside)
    return round(sum(tokens or 0 for tokens in prompts) + answered)


def _rate(inside: Sequence[Seen], start: float, stop: float) -> float | None:
    """Sum of the streams' own rates, each between its first and its last chunk inside.

    A stretch's edges are another stream's chunks, which lie anywhere within the reads of a step; a stream's own
    chunks are whole steps apart. None where a stream has too few chunks, or was put off.
    """
    total, silences = 0.0, []
    for seen in inside:
        low, high = np.searchsorted(seen.times, (start, stop), side="right")
        if high - low < 2:
            return None
        times = seen.times[low:high]
        total += float(seen.tokens[low + 1 : high].sum()) / float(times[-1] - times[0])
        silences.append(max(float(np.diff(times).max()), stop - float(times[-1])))
    return total if max(silences) <= SILENCE_TIMES * min(silences) else None
