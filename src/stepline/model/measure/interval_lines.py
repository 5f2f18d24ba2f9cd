"""Whether a line over a fixed time holds prefill that it does not print.

vLLM counts a prompt's tokens when its prefill ends (`IterationStats.update_from_output`, vllm/v1/metrics/stats.py), so
a line that prints no prompt tokens may hold the chunks of a prompt that the next line counts. The growth of the
KV cache beside the tokens made tells; where the pool's size is not known, what the next line counts does.
"""

from collections.abc import Sequence
from typing import Literal

from stepline.evidence.scheduler import DecodeReport
from stepline.model.measure.timeline import T as LINES
from stepline.threshold import Threshold

Holds = Literal["decode", "prefill", "fewer requests", "unknown"]


class T:
    """Thresholds of this module."""

    growth = Threshold(
        1.5,
        "times the tokens made",
        why="A cache that grows by more holds prompts: decode adds a token to it for each one made.",
    )
    printed = Threshold(
        0.001,
        "share of the pool",
        why="Two usages printed with one decimal of a percent differ by this much from rounding alone.",
        source="vLLM prints 'GPU KV cache usage: 13.3%'",
    )
    block_tokens = Threshold(
        16,
        "tokens a running sequence",
        why="The cache is handed out in blocks: a sequence may have just taken one.",
        source="vLLM's default block size on GPUs",
    )
    chunk_tokens = Threshold(
        2048,
        "tokens",
        why="A prompt no longer than one forward takes is computed in the line that counts it.",
        source="the smallest default of max_num_batched_tokens in vLLM (EngineArgs.get_batch_defaults)",
    )


def held(
    lines: Sequence[DecodeReport], *, pool_tokens: int | None, chunk_tokens: int | None
) -> dict[int, Holds]:
    """What each line that prints no prompt tokens holds, by its `seq`.

    Args:
        lines: all lines over a fixed time of one log and rank, in order.
        pool_tokens: size of the KV pool; None where nobody said.
        chunk_tokens: most tokens of one forward; None where nobody said.
    """
    found: dict[int, Holds] = {}
    counted_next = 0.0  # prompt tokens of the next line that counts any, while requests run
    for index in range(len(lines) - 1, -1, -1):
        line, before = lines[index], lines[index - 1] if index else None
        seconds = _seconds(line, before)
        if line.prefill_tok_s != 0:
            counted_next = (line.prefill_tok_s or 0.0) * seconds
            continue
        if not line.running:
            counted_next = 0.0
            continue
        by_cache = _by_cache(line, before, pool_tokens, made=(line.tok_s or 0.0) * seconds)
        short = counted_next <= (chunk_tokens or T.chunk_tokens)
        found[line.seq] = by_cache or ("decode" if short else "unknown")
    return found


def _by_cache(
    line: DecodeReport, before: DecodeReport | None, pool_tokens: int | None, *, made: float
) -> Holds | None:
    """What the growth of the cache says; None where it is not printed or its digits hide what a prompt would add."""
    if before is None or line.pool_usage is None or before.pool_usage is None:
        return None
    grown = line.pool_usage - before.pool_usage
    if grown < -2 * T.printed:
        return "fewer requests"
    if pool_tokens is None:
        return None
    unsure = T.printed * pool_tokens + T.block_tokens * line.running
    if grown * pool_tokens > T.growth * made + unsure:
        return "prefill"
    return "decode" if unsure < made else None


def _seconds(line: DecodeReport, before: DecodeReport | None) -> float:
    """Time that a line covers: since the line before it, where both carry times and none is missing between."""
    if before is None or line.time_s is None or before.time_s is None:
        return float(LINES.interval_s)
    return min(float(LINES.interval_s), max(1.0, line.time_s - before.time_s))
