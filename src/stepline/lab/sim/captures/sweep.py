"""Levels of closed-loop load and what a client reports of them: the rows of `sweep.json`."""

from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

import msgspec


class Beside(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Requests that arrive at a fixed rate beside the closed loop."""

    every_s: float
    input_tokens: int
    output_tokens: int


class Level(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One closed-loop load: `concurrency` streams, each sending its next request when the last is done.

    Each stream's first answer is shortened by a different fraction, so that ends do not march in step.
    """

    concurrency: int
    input_tokens: int
    output_tokens: int
    seconds: float
    shared_prefix_tokens: int = 0
    """Opening of every prompt that all share; the rest is random."""
    ramp: float = 0.25
    """Part of the level that is not measured: the first burst of prompts and the spreading of ends."""
    beside: Beside | None = None


@dataclass
class Sent:
    """One request as its client saw it; times are Unix seconds."""

    first_round: bool
    sent_s: float
    first_s: float | None = None
    last_s: float | None = None
    first_tokens: int = 0
    tokens: int = 0
    cached: int = 0
    done: bool = False


@dataclass
class Seen:
    """All that came back in one level; a chunk is (Unix time, new tokens, gap to its stream's last chunk)."""

    requests: list[Sent] = field(default_factory=list)
    chunks: list[tuple[float, int, float | None]] = field(default_factory=list)
    failed: int = 0


def row(level: Level, seen: Seen, start: float, end: float) -> dict[str, Any]:
    """What the client saw of one level.

    Returns:
        `C`, `tok_s` in the steady window, `step_ms` =
        C / tok_s (queue and prefill are in it: not a step), median and 99th percentile of TPOT and TTFT over
        the requests that ended in the window and were not a stream's first (over all that ended, where none
        did), gaps between chunks, lengths, Unix times, and how many `requests` ended, failed, or were cut by
        the level's end. Null is not measured.
    """
    low, high = start + level.ramp * (end - start), end
    tokens = sum(n for t, n, _ in seen.chunks if low < t <= high)
    tok_s = tokens / (high - low)
    done = [r for r in seen.requests if r.done]
    steady = [
        r for r in done if r.last_s is not None and low <= r.last_s <= high and not r.first_round
    ] or done
    tpot = [
        1000 * (r.last_s - r.first_s) / (r.tokens - r.first_tokens)
        for r in steady
        if r.first_s is not None and r.last_s is not None and r.tokens > r.first_tokens
    ]
    ttft = [1000 * (r.first_s - r.sent_s) for r in steady if r.first_s is not None]
    gaps = [1000 * g for t, _, g in seen.chunks if g is not None and low < t <= high]
    return {
        "C": level.concurrency,
        "tok_s": round(tok_s, 1),
        "step_ms": round(1000 * level.concurrency / tok_s, 3) if tok_s else None,
        "tpot_ms": _middle(tpot),
        "ttft_ms": _middle(ttft),
        "requests": len(done),
        "tpot_p99_ms": _p99(tpot),
        "ttft_p99_ms": _p99(ttft),
        "chunk_gap_ms": _middle(gaps),
        "chunk_gap_p99_ms": _p99(gaps),
        "input_tokens": level.input_tokens,
        "output_tokens": level.output_tokens,
        "cached_tokens": round(sum(r.cached for r in done) / len(done), 1) if done else None,
        "failed": seen.failed,
        "cut": len(seen.requests) - len(done) - seen.failed,
        "start_unix_s": round(start, 3),
        "end_unix_s": round(end, 3),
        "window_unix_s": [round(low, 3), round(high, 3)],
    }


def _middle(values: list[float]) -> float | None:
    return round(median(values), 3) if values else None


def _p99(values: list[float]) -> float | None:
    return round(quantiles(values, n=100, method="inclusive")[-1], 3) if len(values) > 1 else None
