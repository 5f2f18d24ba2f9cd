"""vLLM's periodic lines and lines of single forwards many at a time: where a regular line has its numbers."""

import re
from typing import Any

from stepline.evidence.scheduler import DecodeReport
from stepline.sources.engines.vllm import stat_lines
from stepline.sources.engines.vllm.stat_lines import time_of
from stepline.sources.logs.template import Number, Template, number

__all__ = ["complete", "goes_on", "learn", "time_of"]

_STATS = {
    "running": ("Running",),
    "queued": ("Waiting", "Pending"),
    "deferred": ("Deferred",),
    "retracted": ("Swapped",),
    "tok_s": ("Avg generation throughput",),
    "prefill_tok_s": ("Avg prompt throughput",),
    "prefix_hit_share": ("Prefix cache hit rate",),
}
_ITERATION = {"running": "gen_reqs", "made": "gen_tokens", "prefill_tokens": "ctx_tokens", "step_ms": "ms"}


def learn(line: str) -> Template | None:
    """The template of a whole line; None for preemptions, which are events, for dummies and for damaged lines."""
    if "Avg prompt throughput" in line:
        return None if "Preemptions" in line else _stats(line)
    return _iteration(line) if "iteration elapsed time" in line else None


def complete(columns: dict[str, Any]) -> None:
    """With speculation the engine schedules drafts too; how many were accepted is not in the line of a forward."""
    import numpy as np  # noqa: PLC0415  # only for logs of many lines

    if "summed" in columns:
        columns["ranks_summed"] = np.fmax(columns.pop("summed"), 1.0)
    if "made" in columns:
        made, running, step_ms = columns.pop("made"), columns["running"], columns["step_ms"]
        plain = (made == running) & (step_ms > 0)
        columns["tok_s"] = np.divide(made, step_ms, out=np.full(len(made), np.nan), where=plain) * 1000


def goes_on(_line: str) -> bool:
    """No line does."""
    return False


def _stats(line: str) -> Template | None:
    found = stat_lines.STATS.search(line)
    if found is None:
        return None
    begin = line.index("Avg prompt throughput: ", found.start())
    pairs = stat_lines.pairs_of(line[begin:])
    named = {field: next((key for key in keys if key in pairs), None) for field, keys in _STATS.items()}
    named["pool_usage"] = next((key for key in pairs if stat_lines.is_pool(key)), None)
    numbers = {
        field: number(
            pairs[key]["value"], begin + pairs[key].start("value"), 100.0 if pairs[key]["unit"] else 1.0
        )
        for field, key in named.items()
        if key is not None
    }
    numbers |= {
        name: _group(found, group) for name, group in (("dp", "engine"), ("summed", "summed")) if found[group]
    }
    return _template(numbers, found, "interval")


def _iteration(line: str) -> Template | None:
    found = stat_lines.ITERATION.search(line)
    if found is None or found["dummy"]:
        return None
    numbers = {field: _group(found, group) for field, group in _ITERATION.items()}
    if usage := stat_lines.CACHE_TAIL.search(line, found.end()):
        numbers["pool_usage"] = _group(usage, 1, 100.0)
    process = stat_lines.PROCESS.search(line, 0, found.start())
    if found["engine"]:
        numbers["dp"] = _group(found, "engine")
    elif process:
        numbers["dp"] = _group(process, 1)
    return _template(numbers, found, "step")


def _group(match: re.Match[str], group: str | int, divisor: float = 1.0) -> Number | None:
    return number(match[group], match.start(group), divisor)


def _template(numbers: dict[str, Number | None], found: re.Match[str], instrument: str) -> Template | None:
    """None where a number is missing or not plain."""
    plain = {name: place for name, place in numbers.items() if place is not None}
    if len(plain) < len(numbers) or "running" not in plain:
        return None
    return Template(record=DecodeReport, prefix=(0, found.start()), numbers=plain, instrument=instrument)
