"""A level's records as one `LoadLevel`."""

from collections.abc import Iterable, Sequence

import numpy as np

from stepline.evidence.load import LoadLevel
from stepline.evidence.origin import Origin
from stepline.sources.load.level import LevelPlan
from stepline.sources.load.stream_counts import Floats, Seen, overlap, tokens_between
from stepline.sources.load.window import decoding_spans, steady_window


def summarise(
    plan: LevelPlan,
    all_seen: Sequence[Seen],
    span: tuple[float, float],
    unix_s: float,
    origin: Origin,
    *,
    ids: bool,
) -> LoadLevel:
    """What the client saw.

    Rates and means over time are of the steady window. Times to first token are of requests sent in it: the first
    round's come all at once, a burst that no steady load has, unless there is one stream alone. Times per token are of
    requests that ended well; where there are none, of all that have the number. Gaps are medians: a mean would hold the
    prompts that other streams' next requests bring.

    Args:
        plan: what was asked for.
        all_seen: every request.
        span: start and end of the level on the records' clock.
        unix_s: Unix time less that clock.
        origin: of the level.
        ids: prompts were sent as ids, so that their length is known without the server.
    """
    start, end = span
    window = steady_window(plan, all_seen, end)
    low, high = window or span
    done = [seen for seen in all_seen if seen.record.end == "ok"]
    sound = [seen for seen in all_seen if seen.record.end in ("ok", "cut")]
    later: list[Seen] = []
    burst: list[Seen] = []
    for each in sound:
        if each.record.sent_s is not None:
            (later if window and low <= each.record.sent_s else burst).append(each)
    alone = plan.concurrency is None or plan.concurrency == 1
    ttft = _ttft_ms(later) or (_ttft_ms(burst) if alone else [])
    tpot = _tpot_ms(done) or _tpot_ms(sound)
    gaps, gap_tokens = _gaps(sound, low, high)
    liars = [s for s in all_seen if s.record.end == "miscounted" and s.last is not None and s.last > low]
    finishes = [s for s in done if low < s.until <= high]
    waits = [s.record.sent_s - s.record.due_s for s in all_seen if s.record.sent_s is not None]
    sent_spans = [(s.record.sent_s, s.until) for s in all_seen if s.record.sent_s is not None]
    prompts = [s.record for s in all_seen if s.record.prompt_tokens and s.record.cached_tokens is not None]
    return LoadLevel(
        origin=origin,
        tool="stepline",
        concurrency=plan.concurrency,
        request_rate_s=plan.request_rate_s,
        tok_s=tokens_between(all_seen, low, high) / (high - low) if window and not liars else None,
        tpot_ms=_mean(tpot),
        tpot_p50_ms=_percentile(tpot, 50),
        tpot_p99_ms=_percentile(tpot, 99),
        ttft_ms=_mean(ttft),
        first_round_ms=max(_ttft_ms(burst), default=None) if plan.concurrency is not None else None,
        ttft_p50_ms=_percentile(ttft, 50),
        ttft_p99_ms=_percentile(ttft, 99),
        itl_ms=_percentile(gaps[gap_tokens > 0] / gap_tokens[gap_tokens > 0], 50),
        chunk_gap_ms=_percentile(gaps, 50),
        e2e_ms=_mean([1000 * (s.until - s.record.sent_s) for s in done if s.record.sent_s is not None]),
        requests=len(done),
        failed=len(all_seen) - len(sound),
        duration_s=end - start,
        start_s=unix_s + start,
        end_s=unix_s + end,
        input_tokens=_mean([s.record.prompt_tokens for s in all_seen if s.record.prompt_tokens])
        or (float(plan.input_tokens) if ids else None),
        # Where none ended in time they were cut: they were to be this long.
        output_tokens=_mean([float(s.tokens.sum()) for s in done])
        or (float(plan.output_tokens) if sound else None),
        asked_output_tokens=float(plan.output_tokens),
        decoding=overlap(decoding_spans(all_seen), low, high) if window else None,
        in_flight=overlap(sent_spans, low, high) if window else None,
        cached_share=sum(r.cached_tokens or 0 for r in prompts) / sum(r.prompt_tokens or 0 for r in prompts)
        if prompts
        else None,
        client_queue_ms=_mean([1000 * wait for wait in waits]),
        requests_s=len(finishes) / (high - low) if window else None,
    )


def _ttft_ms(all_seen: Iterable[Seen]) -> list[float]:
    return [
        1000 * (s.first - s.record.sent_s)
        for s in all_seen
        if s.first is not None and s.record.sent_s is not None
    ]


def _tpot_ms(all_seen: Iterable[Seen]) -> list[float]:
    """Time per token after the first chunk, of each request with more than one chunk."""
    return [
        1000 * (s.last - s.first) / float(s.tokens[1:].sum())
        for s in all_seen
        if s.first is not None and s.last is not None and len(s.times) > 1
    ]


def _gaps(all_seen: Iterable[Seen], low: float, high: float) -> tuple[Floats, Floats]:
    """Gaps between chunks that end in the window, in ms, and the tokens of the chunk that ends each."""
    gaps, tokens = [np.empty(0)], [np.empty(0)]
    for seen in all_seen:
        inside = (seen.times[1:] > low) & (seen.times[1:] <= high)
        gaps.append(1000 * np.diff(seen.times)[inside])
        tokens.append(seen.tokens[1:][inside])
    return np.concatenate(gaps), np.concatenate(tokens)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _percentile(values: Sequence[float] | Floats, percent: float) -> float | None:
    return float(np.percentile(values, percent)) if len(values) else None
