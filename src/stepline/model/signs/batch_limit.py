"""What keeps the running batch below the load: a cap, the KV pool, or nothing that can be seen."""

import math
from typing import Literal

import msgspec

from stepline.evidence.origin import Origin
from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import sign
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    pool_full = Threshold(
        0.9,
        "share of the KV pool in use",
        why="Admission stops: engines hold back room for tokens still to come, so a pool that "
        "cannot admit the next request reads 90 to 100 %.",
        source="engine-side reserve of SGLang 0.4 to 0.5; vLLM's KV usage likewise",
    )
    half_full = Threshold(
        0.5,
        "share of the KV pool in use",
        why="A pool that should hold no further request and reads less is not what holds them back.",
    )
    more = Threshold(
        1.15,
        "offered over running",
        why="From here requests wait: at a level's edges streams come and go.",
        source="that moved the ratio by up to 10 % on undisturbed levels of the H200 captures",
    )
    enough = Threshold(
        4,
        "times the live context",
        why="Room that a lowered context length leaves.",
    )
    enough_least = Threshold(
        8192,
        "tokens",
        why="No lower context length is advised.",
    )


Kind = Literal["cap", "kv", "nothing waits", "unknown"]


class RunningLimit(msgspec.Struct, frozen=True, kw_only=True):
    """Why no more requests run."""

    kind: Kind
    running: float
    offered: float | None
    """Running plus waiting requests; None when the evidence shows neither queue nor client."""
    waiting: float | None
    cap: float | None
    cap_origin: Origin | None
    pool_usage: float | None
    fits: float | None
    """Sequences that the KV pool holds at the load's mean length."""


@sign
def running_limit(picture: Picture) -> RunningLimit | None:
    """The limit at the load; None when no running batch is known at all."""
    load = picture.load
    if load is None:
        return None
    server = picture.run.server
    ranks = server.dp.value if server.dp is not None else 1
    cap = None if server.max_running is None else float(server.max_running.value * max(1, ranks))
    waiting = load.queued
    offered = max(
        (
            value
            for value in (load.concurrency, None if waiting is None else load.running + waiting)
            if value is not None
        ),
        default=None,
    )
    usages = [
        p.pool_usage for p in picture.plateaus if p.running == load.running and p.pool_usage is not None
    ]
    usages += [
        level.pool_usage
        for level in picture.run.levels
        if level.pool_usage is not None and level.running == load.running
    ]
    usages += [
        level.pool_usage
        for level in picture.levels
        if level.pool_usage is not None
        and level.running is not None
        and level.running.running == load.running
    ]
    usage = max(usages) if usages else None
    fits = _fits(picture)
    kind: Kind
    at_cap = cap is not None and load.running >= cap - max(1, ranks)
    # Arithmetic over mean lengths ignores shared prefixes, so it counts only where the pool reads at least half full.
    no_room = fits is not None and load.running + 1 > fits and (usage is None or usage >= T.half_full)
    if offered is None:
        kind = "unknown"
    elif offered <= max(1.0, T.more * load.running):
        kind = "nothing waits"
    elif usage is not None and usage >= T.pool_full:
        kind = "kv"
    elif at_cap:
        kind = "cap"
    elif no_room:
        kind = "kv"
    else:
        kind = "unknown"
    return RunningLimit(
        kind=kind,
        running=load.running,
        offered=offered,
        waiting=waiting,
        cap=cap,
        cap_origin=None if server.max_running is None else server.max_running.origin,
        pool_usage=usage,
        fits=fits,
    )


def _fits(picture: Picture) -> float | None:
    load, capacity = picture.load, picture.run.server.kv_capacity_tokens
    if load is None or capacity is None or load.input_tokens is None or load.output_tokens is None:
        return None
    return capacity.value / (load.input_tokens + load.output_tokens)


@sign
def enough_context(picture: Picture) -> int | None:
    """A configured context that leaves four times the live one: a power of two of at least 8,192."""
    if picture.context is None:
        return None
    return max(T.enough_least, 1 << math.ceil(math.log2(T.enough * picture.context.tokens)))
