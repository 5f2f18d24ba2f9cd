"""L104 cold-start.

What it means:
    The measurement holds the server's first requests: kernels are compiled, caches filled and graphs warmed in it.

Why it costs:
    Nothing in production; it makes a benchmark read slow, most of all first-token times of the first level.

Evidence needed:
    First-token times of several levels, or compile lines after the server was ready.

How it decides:
    A level measured twice read over 15 % slower the first time: confirmed, since nothing but time changed. Suspected
    when its slowest first token came over five times and 200 ms later the first time, when a load waits over five times
    longer for first tokens than a heavier one and none before it was quick, or when kernels were compiled while
    requests ran. It costs no decode rate; confirmed, it goes first, since the other numbers are doubted.

What would prove it wrong:
    The same level measured again reads the same.

What to try:
    Send a few requests of each shape first, then measure.

References:
    vllm-project/vllm issue 43009
"""

from collections.abc import Sequence

from stepline import units
from stepline.evidence.load import LoadLevel
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
from stepline.model.measure.levels import OfferedLevel
from stepline.model.picture.picture import Picture
from stepline.threshold import Threshold


class T:
    """Thresholds of this rule."""

    slower = Threshold(
        5.0,
        "times the later first-token time",
        why="A lightly loaded server answers first; this many times slower than under more load is "
        "beyond scheduling noise.",
        source="the four H200 captures read 0.04 to 0.7",
    )
    compiled_ms = Threshold(
        200.0,
        "ms",
        why="How much later it must be: twice as much as first tokens of one load differ on a warm server.",
        source="H200, 99th percentiles of 160 and 57 ms at 8 streams, tests/data/h200-sglang-2/cold_start",
    )
    slower_again = Threshold(
        1.15,
        "times the first rate",
        why="A repeated level this much faster was cold the first time.",
        source="repeated levels of a warm H200 server differ by up to 2 %; a cold one read 60 % slower "
        "the first time",
    )
    turned_over = Threshold(
        0.5,
        "share of the streams",
        why="Requests that a level needs, over its streams, before its first-token time stands for the load.",
    )
    same_length = Threshold(
        0.02,
        "share of the larger mean length",
        why="Means of one load differ by 1 % with the requests that end in time.",
        source="model/change/throughput_pairs.py",
    )
    same_time = Threshold(
        0.1,
        "share of the longer time",
        why="Levels measured for one time hold fewer requests where the server is slower, and are of one load.",
    )
    same_share = Threshold(
        0.5,
        "share of the requests per stream",
        why="Half as many give the opening burst twice the weight. Where nothing tells what was sent, a repeat sends "
        "as many requests.",
    )


LENGTHS = ("input_tokens", "output_tokens")


def check(picture: Picture) -> Outcome:
    """Decide whether warm-up is inside the measurement."""
    compiled = [event for event in picture.run.events if event.kind == "jit-compile"]
    ready = next((event for event in picture.run.events if event.kind == "ready"), None)
    during = [event for event in compiled if ready is not None and event.seq > ready.seq]
    timed = _timed(picture)
    repeated = _slower_first_time(picture) or _late_first_token(picture)
    if repeated is not None:
        return repeated
    slow = None
    for index, first in enumerate(timed[:-1]):
        later = min(
            (
                level.ttft_ms
                for level in timed[index + 1 :]
                if level.ttft_ms is not None
                and level.concurrency > first.concurrency
                and _same_prompts(first, level)
            ),
            default=None,
        )
        if later is not None and first.ttft_ms is not None and first.ttft_ms > T.slower * later:
            slow = None if _warm_before(picture, first) else (first, later)
            break
    if slow is None and not during:
        if len(timed) < 2 and not picture.run.decodes:
            return CannotTell("first-token times of two levels", "measure a light and a heavier load")
        return Clear(
            "no level waits longer for first tokens than a heavier one, and nothing was compiled while serving"
        )
    evidence = []
    if slow is not None:
        evidence.append(
            Observation(
                f"first tokens took {units.ms(slow[0].ttft_ms or 0)} at C = {slow[0].concurrency:g}, but "
                f"{units.ms(slow[1])} at a heavier load",
                slow[0].origin,
            )
        )
    evidence += [
        Observation("kernels were compiled while requests ran", event.origin) for event in during[:1]
    ]
    return Fired(
        status="suspected",
        headline="the server was still warming up while it was measured",
        evidence=tuple(evidence),
        rivals=(Rival("L102 prefix-cache-distortion", "the same level again, with fresh prompts"),),
        tries=(Try("send a few requests of each shape before measuring", "seconds"),),
        proof=Proof("measure the same level a second time", 30.0),
    )


def _timed(picture: Picture) -> list[OfferedLevel]:
    """Levels with first-token times of a steady load.

    Where a level has no more requests than streams all of them start at once: its wait is that of the burst.
    """
    bursts = {
        level.origin
        for level in picture.run.levels
        if level.requests is not None and level.concurrency and level.requests <= level.concurrency
    }
    return [level for level in picture.levels if level.ttft_ms is not None and level.origin not in bursts]


def _same_prompts(one: OfferedLevel, other: OfferedLevel) -> bool:
    """Whether first tokens of two levels wait for prompts of one length; unknown lengths are taken for one."""
    if one.input_tokens is None or other.input_tokens is None:
        return True
    return abs(one.input_tokens - other.input_tokens) <= T.same_length * max(
        one.input_tokens, other.input_tokens
    )


def _same_load(first: LoadLevel, later: LoadLevel) -> bool:
    """True when nothing that the client states tells two levels apart."""
    stated = (
        "concurrency",
        "arm",
        "request_rate_s",
        "running",
        "workload",
        "served_with",
        "model",
        "backend",
    )
    if any(getattr(first, name) != getattr(later, name) for name in stated):
        return False
    if not all(_alike(getattr(first, name), getattr(later, name), T.same_length) for name in LENGTHS):
        return False
    described = first.workload is not None or None not in (first.input_tokens, first.output_tokens)
    if described and first.concurrency is not None and first.concurrency <= 1:
        return True  # one stream opens with no burst
    timed = None not in (first.duration_s, later.duration_s) and _alike(
        first.duration_s, later.duration_s, T.same_time
    )
    return timed or _alike(
        _per_stream(first), _per_stream(later), T.same_share if described else T.same_length
    )


def _per_stream(level: LoadLevel) -> float | None:
    """Requests that each stream sends: the first is of the opening burst, so few of them make another load."""
    return level.requests / level.concurrency if level.requests and level.concurrency else None


def _alike(one: float | None, other: float | None, tolerance: float) -> bool:
    """Equal within a share; known on one side alone is not alike."""
    if one is None or other is None:
        return one is other
    return abs(one - other) <= tolerance * max(abs(one), abs(other))


def _warm_before(picture: Picture, slow: OfferedLevel) -> bool:
    """True when a level that ended before this one began had first tokens that quick: then the server was warm."""
    return any(
        level.end_s is not None
        and slow.time is not None
        and level.end_s <= slow.time.start_s
        and level.ttft_ms is not None
        and T.slower * level.ttft_ms < (slow.ttft_ms or 0.0)
        for level in picture.run.levels
    )


def _read(picture: Picture) -> list[LoadLevel]:
    """Levels in the order in which they were measured, those that nothing but time tells apart; else none.

    A level in which hardly an answer ended shows its opening burst, and is no first reading of a later one.
    """
    if picture.run.levers:
        return []  # rows of a comparison differ by more than time
    return [
        level
        for level in _in_time(picture.run.levels)
        if level.concurrency is not None
        and level.tok_s
        and (level.requests is None or level.requests >= T.turned_over * level.concurrency)
    ]


def _in_time(levels: Sequence[LoadLevel]) -> list[LoadLevel]:
    """By the time that all of them tell, else as written."""
    for name in ("start_s", "wrote_s"):
        times = [getattr(level, name) for level in levels]
        if all(time is not None for time in times):
            return sorted(levels, key=lambda level: getattr(level, name))
    return list(levels)


def _late_first_token(picture: Picture) -> Fired | None:
    """A level whose slowest first token came far later than that of the same load measured again."""
    order = _read(picture)
    for index, first in enumerate(order):
        again = [
            later
            for later in order[index + 1 :]
            if _same_load(first, later) and later.ttft_p99_ms is not None
        ]
        late_ms = first.ttft_p99_ms
        if late_ms is None or not again:
            continue
        later_ms = max(level.ttft_p99_ms or 0.0 for level in again)
        if late_ms < T.slower * later_ms or late_ms < later_ms + T.compiled_ms:
            continue
        load = f"C = {first.concurrency:g}"
        return Fired(
            status="suspected",
            headline=f"a first token at {load} took {units.ms(late_ms)}, at the same load later {units.ms(later_ms)}",
            evidence=(
                Observation(
                    f"slowest first token (99th percentile) {units.ms(late_ms)} at {load}", first.origin
                ),
                Observation(f"{units.ms(later_ms)} at the same load later", again[-1].origin),
            ),
            ruled_out=(RuledOut("a slow server", "the same server answered the same load sooner later"),),
            rivals=(Rival("a pause of the host", "the same level a third time"),),
            tries=(Try("send a few requests of each shape before measuring", "seconds"),),
            proof=Proof("measure the same level a third time", 30.0),
        )
    return None


def _slower_first_time(picture: Picture) -> Fired | None:
    """A level that was measured again later and read faster."""
    order = _read(picture)
    for index, first in enumerate(order):
        again = [later for later in order[index + 1 :] if _same_load(first, later)]
        if not again or first.tok_s is None:
            continue
        best = max(level.tok_s or 0.0 for level in again)
        if best < T.slower_again * first.tok_s:
            continue
        load = f"C = {first.concurrency:g}"
        return Fired(
            status="confirmed",
            headline=f"the first measurement of {load} read {units.times(best / first.tok_s)} too slow: a cold server",
            evidence=(
                Observation(f"{units.tok_s(first.tok_s)} at {load} the first time", first.origin),
                Observation(f"{units.tok_s(best)} at the same load later", again[-1].origin),
            ),
            ruled_out=(RuledOut("a slow server", "the same server answered the same load faster later"),),
            tries=(Try("send a few requests of each shape before measuring", "seconds"),),
            proof=Proof("measure the same level a third time", 30.0),
        )
    return None


RULE = Rule("L104", "cold-start", "0.1.0", check)
