"""Closed-loop load with exact token counts: what one level sends, sees, and reports."""

import asyncio
import contextlib
import random
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

from stepline.lab.real import http
from stepline.lab.real.matrix import Level


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


def prompt(rng: random.Random, level_tokens: int, shared: int, vocab: int) -> list[int]:
    """A prompt of `level_tokens` ids: the first `shared` are the same in every prompt, the rest random."""
    common = random.Random(0).choices(range(16, vocab), k=shared)  # noqa: S311 - load, not cryptography
    return common + rng.choices(range(16, vocab), k=level_tokens - shared)


async def _one(
    port: int, seen: Seen, ids: list[int], output_tokens: int, temperature: float, *, first_round: bool
) -> None:
    sampling = {"max_new_tokens": output_tokens, "ignore_eos": True, "temperature": temperature}
    request = Sent(first_round=first_round, sent_s=time.time())
    seen.requests.append(request)
    try:
        stream = http.generate(port, {"input_ids": ids, "sampling_params": sampling, "stream": True})
        async with contextlib.aclosing(stream):
            async for now, tokens, cached in stream:
                gap = None if request.last_s is None else now - request.last_s
                if request.first_s is None:
                    request.first_s, request.first_tokens, request.cached = now, tokens, cached
                seen.chunks.append((now, tokens - request.tokens, gap))
                request.last_s, request.tokens = now, tokens
        request.done = request.tokens == output_tokens
        seen.failed += not request.done
    except (
        OSError,
        asyncio.IncompleteReadError,
        ValueError,
    ):  # the engine dropped it; the level goes on and says so
        seen.failed += 1
        await asyncio.sleep(0.1)


async def _stream(
    port: int, seen: Seen, level: Level, turns: Iterator[int], *, index: int, rng: random.Random, vocab: int
) -> None:
    for turn, _ in enumerate(turns):
        tokens = level.output_tokens
        if turn == 0 and level.seconds is not None:
            tokens = max(1, tokens * (index + 1) // level.concurrency)
        ids = prompt(rng, level.input_tokens, level.shared_prefix_tokens, vocab)
        await _one(port, seen, ids, tokens, level.temperature, first_round=turn == 0)


async def _beside(port: int, level: Level, rng: random.Random, vocab: int) -> None:
    if level.beside is None:
        return
    seen, running = Seen(), set()
    while True:
        ids = prompt(rng, level.beside.input_tokens, 0, vocab)
        task = asyncio.create_task(_one(port, seen, ids, level.beside.output_tokens, 0.0, first_round=False))
        running.add(task)
        task.add_done_callback(running.discard)
        try:
            await asyncio.sleep(level.beside.every_s)
        except asyncio.CancelledError:
            for each in list(running):
                each.cancel()
            raise


async def run_level(port: int, level: Level, *, seed: int, vocab: int) -> dict[str, Any]:
    """Drive one level and return its row of `sweep.json` (see `row`)."""
    rng = random.Random(seed)  # noqa: S311 - load, not cryptography
    seen, turns = Seen(), iter(range(level.requests or 10**9))
    cpu, start = resource.getrusage(resource.RUSAGE_SELF), time.time()
    streams = [
        asyncio.create_task(_stream(port, seen, level, turns, index=i, rng=rng, vocab=vocab))
        for i in range(level.concurrency)
    ]
    beside = asyncio.create_task(_beside(port, level, rng, vocab))
    await asyncio.wait(streams, timeout=level.seconds)
    end = time.time()
    after = resource.getrusage(resource.RUSAGE_SELF)
    for task in (*streams, beside):
        task.cancel()
    await asyncio.gather(*streams, beside, return_exceptions=True)
    busy = (after.ru_utime + after.ru_stime - cpu.ru_utime - cpu.ru_stime) / (end - start)
    return row(level, seen, start, end) | {"client_cpu_share": round(busy, 3)}


def _window(level: Level, seen: Seen, start: float, end: float) -> tuple[float, float] | None:
    if level.seconds is not None:
        return start + level.ramp * (end - start), end
    firsts = [r.first_s for r in seen.requests[: level.concurrency] if r.first_s is not None]
    ends = [r.last_s for r in seen.requests if r.done and r.last_s is not None]
    if len(firsts) < level.concurrency or not ends or min(ends) <= max(firsts):
        return None
    return max(firsts), min(ends)


def row(level: Level, seen: Seen, start: float, end: float) -> dict[str, Any]:
    """What the client saw of one level.

    Returns:
        `C`, `tok_s` in the steady window (0.0 with a null `step_ms` where there was none), `step_ms` =
        C / tok_s (queue and prefill are in it: not a step), median and 99th percentile of TPOT and TTFT over
        the requests that ended in the window and were not a stream's first (over all that ended, where none
        did), gaps between chunks, lengths, Unix times, and how many `requests` ended, failed, or were cut by
        the level's end. Null is not measured.
    """
    window = _window(level, seen, start, end)
    low, high = window or (start, end)
    tokens = sum(n for t, n, _ in seen.chunks if low < t <= high)
    tok_s = tokens / (high - low) if window else 0.0
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
        "window_unix_s": [round(low, 3), round(high, 3)] if window else None,
    }


def _middle(values: list[float]) -> float | None:
    return round(median(values), 3) if values else None


def _p99(values: list[float]) -> float | None:
    return round(quantiles(values, n=100, method="inclusive")[-1], 3) if len(values) > 1 else None
