"""Closed-loop rates at client levels that both sides offered alike: concurrency, prompt and output length, tool."""

import math
import statistics
from collections.abc import Sequence

import msgspec

from stepline.model.change.pairs import Pair, Pairs
from stepline.model.change.speedup import Measured, from_windows
from stepline.model.change.step_pairs import T as STEPS
from stepline.model.change.step_pairs import least_steady, window_groups
from stepline.model.measure.levels import OfferedLevel
from stepline.model.picture.picture import Picture
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    same_length = Threshold(
        1.1,
        "times",
        why="Prompt and output lengths this close are alike.",
        source="means of one load differ by 1 % with the requests that finish",
    )


CLIENT = ("rates of a client",)


def rate_pairs(befores: Sequence[Picture], afters: Sequence[Picture]) -> Pairs:
    """Every level that all sides measured undisturbed; levels of one kind in one run pair in the order they ran in."""
    tools = [
        {level.tool for picture in side for level in picture.run.levels if level.tool}
        for side in (befores, afters)
    ]
    if all(tools) and not tools[0] & tools[1]:
        names = [", ".join(sorted(side)) for side in tools]
        return Pairs(unlike=(f"rates come from {names[0]} before and from {names[1]} after",))
    pairs: list[Pair] = []
    unlike: list[str] = []
    unknown = False
    sides = [[_usable(picture) for picture in side] for side in (befores, afters)]
    done: list[OfferedLevel] = []
    for level in (level for run in sides[0] for level in run):
        if any(_alike(level, other) is None for other in done):
            continue
        done.append(level)
        there = [other for run in sides[1] for other in run if other.concurrency == level.concurrency]
        reasons = [reason for other in there if (reason := _alike(level, other)) is not None]
        if there and len(reasons) == len(there):
            unlike.append(f"at C = {level.concurrency:g} {reasons[0]}")
        unknown = unknown or any(not _told(level, other) for other in there)
        pairs += _level_pairs(level, sides, (befores, afters))
    other_load = _other_load(sides)
    if not pairs and not unlike and all(any(side) for side in sides):
        offered = [
            ", ".join(f"{c:g}" for c in sorted({x.concurrency for run in side for x in run}))
            for side in sides
        ]
        unlike.append(f"clients held {offered[0]} streams open before and {offered[1]} after")
    doubts = ("prompt and output lengths are not known on both sides",) if unknown else ()
    return Pairs(
        pairs=tuple(pairs),
        left_out=(*_left_out(befores, afters), *_one_sided(sides)),
        unlike=tuple(unlike),
        instruments=(CLIENT if any(sides[0]) else (), CLIENT if any(sides[1]) else ()),
        other_load=other_load,
        doubts=doubts,
    )


def _one_sided(sides: Sequence[Sequence[Sequence[OfferedLevel]]]) -> list[str]:
    """Rates whose concurrency the other side did not measure."""
    levels = [[level for run in side for level in run] for side in sides]
    offered = [{level.concurrency for level in side} for side in levels]
    return [
        f"{name}: C = {level.concurrency:g}: {level.tok_s:,.0f} tok/s, no undisturbed rate {other}"
        for side, there, name, other in (
            (levels[0], offered[1], "before", "after"),
            (levels[1], offered[0], "after", "before"),
        )
        for level in side
        if level.concurrency not in there and level.tok_s
    ]


def _other_load(sides: Sequence[Sequence[Sequence[OfferedLevel]]]) -> str | None:
    """How lengths differ where no level of one side has those of any level of the other."""
    before, after = ([level for run in side for level in run] for side in sides)
    reasons = [_other_lengths(one, other) for one in before for other in after]
    if not reasons or None in reasons:
        return None
    return reasons[0]


def _level_pairs(
    level: OfferedLevel,
    sides: Sequence[Sequence[Sequence[OfferedLevel]]],
    pictures: tuple[Sequence[Picture], Sequence[Picture]],
) -> list[Pair]:
    found = [
        [
            values
            for levels, picture in zip(side, of, strict=True)
            if (values := [_measured(x, picture) for x in levels if _same_level(level, x)])
        ]
        for side, of in zip(sides, pictures, strict=True)
    ]
    if not all(found):
        return []
    counts = {len(values) for side in found for values in side}
    times = counts.pop() if len(counts) == 1 else None
    columns = range(times) if times is not None else [None]
    twins = sum(other.concurrency == level.concurrency for other in sides[0][0])
    several = twins > 1 and (times is None or twins > times)
    return [
        Pair(
            measure="rate",
            instrument="client",
            level=level.concurrency,
            context=level.input_tokens if several else None,
            turn=None if at is None or times == 1 else at + 1,
            before=tuple(_pick(values, at) for values in found[0]),
            after=tuple(_pick(values, at) for values in found[1]),
        )
        for at in columns
    ]


def _pick(values: Sequence[Measured], at: int | None) -> Measured:
    """The level that ran at this place; where runs repeat a level unequally often, the mean of its values."""
    if at is not None:
        return values[at]
    logs = [value.log_speed for value in values]
    spread = statistics.stdev(logs) if len(logs) > 1 else None
    return Measured(
        log_speed=statistics.fmean(logs), windows=len(logs), spread=spread, independent=float(len(logs))
    )


def _usable(picture: Picture) -> list[OfferedLevel]:
    return [level for level in picture.levels if level.disturbed is None and level.tok_s]


def _same_level(one: OfferedLevel, other: OfferedLevel) -> bool:
    return one.concurrency == other.concurrency and _alike(one, other) is None


def _alike(one: OfferedLevel, other: OfferedLevel) -> str | None:
    """None when two levels of one concurrency are one load, as far as anybody said; else how they differ."""
    return "another concurrency" if one.concurrency != other.concurrency else _other_lengths(one, other)


def _other_lengths(one: OfferedLevel, other: OfferedLevel) -> str | None:
    asked = (one.asked_output_tokens, other.asked_output_tokens)
    outputs = (one.output_tokens, other.output_tokens) if None in asked else asked
    for name, ours, theirs in (
        ("prompts", one.input_tokens, other.input_tokens),
        ("outputs", *outputs),
    ):
        if ours and theirs and max(ours, theirs) > T.same_length * min(ours, theirs):
            return f"{name} have {ours:,.0f} tokens before and {theirs:,.0f} after"
    return None


def _told(one: OfferedLevel, other: OfferedLevel) -> bool:
    return None not in (one.input_tokens, one.output_tokens, other.input_tokens, other.output_tokens)


def _measured(level: OfferedLevel, picture: Picture) -> Measured:
    """The level's rate; how steady the server was there, by decode windows at its batch and within its contexts."""
    running = None if level.running is None else level.running.running
    most = (level.input_tokens or math.inf) + (level.output_tokens or math.inf)
    steps = [
        [window.step_ms for window in windows]
        for at, context, windows in window_groups(picture)
        if at == running
        and len(windows) >= STEPS.enough
        and (level.input_tokens or 0) <= (context or most) <= most
    ]
    log_speed = math.log(level.tok_s or math.nan)
    if steps:
        return msgspec.structs.replace(from_windows(steps[0]), log_speed=log_speed)
    return Measured(log_speed=log_speed, windows=1, spread=least_steady(picture))


def _left_out(befores: Sequence[Picture], afters: Sequence[Picture]) -> tuple[str, ...]:
    return tuple(
        f"{side}: C = {level.concurrency:g}: {level.disturbed}"
        for side, pictures in (("before", befores), ("after", afters))
        for picture in pictures
        for level in picture.levels
        if level.disturbed is not None
    )
