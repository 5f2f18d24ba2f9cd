"""Which experiment comes next: a few fixed policies, each asked in turn, no optimiser.

1. One stream, then many: the ends of the law, and whether all of the many really run.
2. A middle level: three points make a law that can be refused.
3. The heaviest level again while its step is not known to 3 %.
4. A short profile at the load, when the step is longer than healthy servers take or a cause is only suspected.
5. Another context at the middle level, when a long step has no cause yet or one that grows with the request.
"""

import math

import msgspec

from stepline.evidence.load import LoadLevel
from stepline.findings.diagnosis import RunDiagnosis
from stepline.findings.families import inside_step
from stepline.findings.registry import find_rule
from stepline.model.picture.picture import Picture
from stepline.plan.experiment import Experiment, Limits, Stop
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    many = Threshold(
        64,
        "streams",
        why="Of the heaviest level unless the user says: beyond the caps and graph ceilings people "
        "trip over (8, 32, 48) and within what one client process drives with ease.",
    )
    tight = Threshold(
        0.03,
        "half-width of the step's interval",
        why="More repeats decide nothing below it.",
        source="the step is promised within 3 %",
    )
    max_repeats = Threshold(
        2,
        "repeats of the heaviest level",
        why="A server that is still unsteady then stays so.",
    )
    turned_over = Threshold(
        0.5,
        "share of the streams",
        why="They must have ended an answer before a level's rate holds its prompts too.",
    )
    spare = Threshold(
        1.3,
        "times the time it should take",
        why="An answer's end comes late by whatever else the server does.",
    )
    tries = Threshold(
        2,
        "tries of a level",
        why="One that brought no rate twice will not.",
    )
    healthy = Threshold(
        1.3,
        "step over the typical one",
        why="Up to here no profile is worth its freeze.",
        source="the typical line itself misses held-out measurements by 22 % in the mean (docs/accuracy.md)",
    )
    min_level_s = Threshold(
        6.0,
        "s",
        why="A shorter level holds too few lines of a log with whole seconds.",
    )
    max_level_s = Threshold(
        30.0,
        "s",
        why="A longer one takes from the others' time.",
    )
    rounds = Threshold(
        160,
        "steps",
        why="Shared steps of a first round: four decode windows, of which the first holds the prompts.",
        source="SGLang prints a window every 40 steps",
    )
    min_rounds = Threshold(
        24,
        "steps",
        why="Shared steps that a level needs at least.",
    )
    together = Threshold(
        0.4,
        "share of a level's time",
        why="Spent on the shared steps: the rest shows the rate while answers end and prompts come.",
    )
    first_step_ms = Threshold(
        10.0,
        "ms",
        why="Guess before anything was measured; only the length of the first level hangs on it.",
    )
    trace_steps = Threshold(
        8,
        "steps",
        why="Of a profile: enough for a median, few enough for a small file.",
    )
    trace_s = Threshold(
        12.0,
        "s",
        why="Two seconds of load, the steps, and the writing of the trace.",
        source="2 to 5 s of writing on the H200 captures",
    )
    other = Threshold(
        6,
        "factor between the two prompts",
        why="The contexts must lie four times apart to tell a slope from the noise of a step, and "
        "answers lengthen both.",
        source="at 4 the default load showed contexts of 604 and 2,222 tokens, 3.7 times",
    )
    long = Threshold(
        8192,
        "prompt tokens",
        why="From here the other context is the shorter one: four times as long would cost the "
        "server minutes.",
    )
    min_prompt = Threshold(
        64,
        "prompt tokens",
        why="A shorter other context says nothing of its length: the template takes most of it.",
    )
    shortest = Threshold(
        16,
        "prompt tokens",
        why="Of a load, where a server takes no more.",
    )
    middle = Threshold(
        8,
        "streams",
        why="The third point, where nobody knows what ran at the heaviest level.",
    )
    points = Threshold(
        3, "levels", why="A law in N needs a third point to be held against its line.", source="arithmetic"
    )


MIN_CONTEXT = T.shortest + T.rounds
"""What a server must take beside an answer: first answers are longer by the shared steps."""


def next_experiment(
    picture: Picture | None, diagnosis: RunDiagnosis | None, done: tuple[Experiment, ...], limits: Limits
) -> Experiment | Stop:
    """The next experiment that fits the budget left, or the reason to stop."""
    left = limits.budget_s - sum(experiment.seconds for experiment in done)
    for propose in (_sweep, _repeat, _profile, _context):
        experiment = propose(picture, diagnosis, done, limits)
        if experiment is not None:
            if experiment.seconds > left:
                return Stop(
                    f"the budget of {limits.budget_s:.0f} s is used; next would have been {_name(experiment)}"
                )
            return experiment
    return Stop("nothing left that would change the answer")


def outline(limits: Limits) -> tuple[Experiment, ...]:
    """What would be run on a server of which nothing is known yet, the conditional ones at the end."""
    sweep: tuple[Experiment, ...] = ()
    while (step := _sweep(None, None, sweep, limits)) is not None:
        sweep = (*sweep, step)
    heaviest = max(experiment.concurrency for experiment in sweep)
    maybe = [_profiled(limits, heaviest, T.first_step_ms)] if limits.profile else []
    if other := _other(limits, sweep):
        maybe.append(other)
    return (*sweep, *(msgspec.structs.replace(experiment, sure=False) for experiment in maybe))


def _name(experiment: Experiment) -> str:
    return f"{experiment.kind} at C = {experiment.concurrency} ({experiment.decides})"


def _answered(picture: Picture | None, done: tuple[Experiment, ...]) -> list[int]:
    """Levels that need no other try: a first one may pass in compiling kernels and show no rate at all."""
    levels = () if picture is None else picture.run.levels
    rated = {level.concurrency for level in levels if level.tok_s}
    tries = _levels(done)
    return [
        streams for streams in tries if picture is None or streams in rated or tries.count(streams) >= T.tries
    ]


def _levels(done: tuple[Experiment, ...]) -> list[int]:
    return [experiment.concurrency for experiment in done if experiment.kind == "level"]


def _sweep(
    picture: Picture | None, _: RunDiagnosis | None, done: tuple[Experiment, ...], limits: Limits
) -> Experiment | None:
    driven = _answered(picture, done)
    if limits.concurrency:
        for wanted in limits.concurrency:
            if wanted not in driven:
                return _level(picture, limits, wanted, "a level that was asked for")
        return None
    if 1 not in driven:
        return _level(picture, limits, 1, "the step of one sequence: what every step costs")
    if T.many not in driven:
        return _level(
            picture, limits, T.many, "the running batch and step under load: caps, queue, graph ceiling"
        )
    if len(driven) < T.points:
        return _level(picture, limits, _middle(picture), "a third point: whether the step follows a law in N")
    return None


def _middle(picture: Picture | None) -> int:
    """Geometric middle between one and what really ran; at a cap, the cap itself, where nobody queues."""
    load = None if picture is None else picture.load
    if load is None:
        return T.middle
    running = round(load.running)
    if running < T.many / 2:
        return max(2, running)
    return max(2, round(math.sqrt(running)))


def _repeat(
    picture: Picture | None, _: RunDiagnosis | None, done: tuple[Experiment, ...], limits: Limits
) -> Experiment | None:
    """The load's level again when it was too short to turn over, or when its step is not known well enough."""
    if picture is None or picture.step is None or picture.load is None or picture.load.concurrency is None:
        return None
    heaviest = round(picture.load.concurrency)
    if _levels(done).count(heaviest) > T.max_repeats or any(
        experiment.kind == "profile" for experiment in done
    ):
        return None
    driven = [level for level in picture.run.levels if level.concurrency == heaviest]
    if not any(_turned_over(level) for level in driven):
        return _longer(driven[-1], picture.step.measured_ms, done, limits) if driven else None
    interval, step = picture.step.interval, picture.step.measured_ms
    if interval is None or (interval.high - interval.low) / 2 <= T.tight * step:
        return None
    return _level(picture, limits, heaviest, "the load's step again: its interval is wider than 3 %")


def _turned_over(level: LoadLevel) -> bool:
    """True when half the streams at least ended one answer and began the next."""
    return (level.requests or 0) >= T.turned_over * (level.concurrency or 0)


def _longer(
    level: LoadLevel, step_ms: float, done: tuple[Experiment, ...], limits: Limits
) -> Experiment | None:
    """The level again for as long as half its streams need to end; None where that is longer than a level may be.

    By the answers that ended so far, or by the first round's wait and the steps of a middle stream's answer.
    """
    wanted = T.turned_over * (level.concurrency or 0)
    if level.requests and level.duration_s:
        needed_s = level.duration_s * wanted / level.requests
    else:
        steps = T.min_rounds + T.turned_over * limits.output_tokens
        needed_s = ((level.first_round_ms or level.ttft_p99_ms or 0.0) + steps * step_ms) / 1000
    left_s = limits.budget_s - sum(experiment.seconds for experiment in done)
    seconds = max(T.min_level_s, T.spare * needed_s)
    if seconds > min(T.max_level_s, left_s):
        return None
    return Experiment(
        kind="level",
        concurrency=round(level.concurrency or 0),
        input_tokens=fitted(limits, limits.input_tokens),
        output_tokens=limits.output_tokens,
        together_tokens=T.min_rounds,
        seconds=seconds,
        decides="the rate under load: so far too few answers ended for one",
    )


def _profile(
    picture: Picture | None, diagnosis: RunDiagnosis | None, done: tuple[Experiment, ...], limits: Limits
) -> Experiment | None:
    if not limits.profile or picture is None or diagnosis is None or picture.load is None:
        return None
    if any(experiment.kind == "profile" for experiment in done) or picture.step is None:
        return None
    in_step = [finding for finding in diagnosis.findings if inside_step(finding.code)]
    open_cause = any(finding.status == "suspected" for finding in in_step)
    if not (open_cause or (_slow(picture) and not any(f.status == "confirmed" for f in diagnosis.findings))):
        return None
    pool = picture.run.server.kv_capacity_tokens
    return _profiled(
        limits,
        round(picture.load.running),
        picture.step.measured_ms,
        math.inf if pool is None else pool.value,
    )


def _profiled(limits: Limits, running: int, step_ms: float, pool_tokens: float = math.inf) -> Experiment:
    """All streams answer until the trace is written: a prompt inside it would be traced in place of decode steps.

    Where the pool cannot hold them all for so long they end sooner: most would wait, and a smaller batch be traced.
    """
    seconds = T.trace_s + 4 * T.trace_steps * step_ms / 1000
    prompt = fitted(limits, limits.input_tokens)
    longest = math.inf if limits.context_tokens is None else limits.context_tokens
    room = min(longest, pool_tokens / max(1, running)) - prompt - limits.output_tokens
    return Experiment(
        kind="profile",
        concurrency=max(1, running),
        input_tokens=prompt,
        output_tokens=limits.output_tokens,
        together_tokens=round(max(0, min(room, 1000 * seconds / step_ms))),
        seconds=seconds,
        decides="where the step's time goes on the GPU, and how much of it the GPU waits",
        steps=T.trace_steps,
    )


def _context(
    picture: Picture | None, diagnosis: RunDiagnosis | None, done: tuple[Experiment, ...], limits: Limits
) -> Experiment | None:
    """Another context, where the step is too long and nothing so far says what for."""
    if picture is None or diagnosis is None or picture.step is None:
        return None
    if len({experiment.input_tokens for experiment in done}) > 1:
        return None
    found = diagnosis.findings
    grows = any(
        finding.status == "suspected" and find_rule(finding.code).grows_with_request for finding in found
    )
    return _other(limits, done) if grows or (_slow(picture) and not found) else None


def _slow(picture: Picture) -> bool:
    """True when the step is longer than healthy servers take, or nobody can say what those take."""
    typical = None if picture.floors is None else picture.floors.typical
    return picture.step is not None and (typical is None or picture.step.measured_ms > T.healthy * typical.ms)


def _other(limits: Limits, done: tuple[Experiment, ...]) -> Experiment | None:
    """The middle level at a longer context, or at a shorter one where the server takes no longer."""
    driven = sorted(set(_levels(done)))
    middle = driven[len(driven) // 2]
    base = next(e for e in done if e.kind == "level" and e.concurrency == middle)
    longer = fitted(limits, T.other * base.input_tokens)
    fits = base.input_tokens < T.long and longer >= T.other * base.input_tokens
    other = longer if fits else base.input_tokens // T.other
    if other < T.min_prompt:
        return None
    return Experiment(
        kind="level",
        concurrency=middle,
        input_tokens=other,
        output_tokens=base.output_tokens,
        together_tokens=base.together_tokens,
        seconds=base.seconds,
        decides="whether the step grows with the context that is really there",
    )


def fitted(limits: Limits, input_tokens: int) -> int:
    """The prompt, shortened to what the server takes beside two answers."""
    if limits.context_tokens is None:
        return input_tokens
    return max(T.shortest, min(input_tokens, limits.context_tokens - 3 * limits.output_tokens - T.rounds))


def _level(picture: Picture | None, limits: Limits, concurrency: int, decides: str) -> Experiment:
    step_ms = _expected_step_ms(picture, concurrency)
    rounds = T.rounds + 1.5 * limits.output_tokens
    seconds = min(T.max_level_s, max(T.min_level_s, rounds * step_ms / 1000), limits.budget_s / 4)
    together = round(min(T.rounds, max(T.min_rounds, T.together * 1000 * seconds / step_ms)))
    return Experiment(
        kind="level",
        concurrency=concurrency,
        input_tokens=fitted(limits, limits.input_tokens),
        output_tokens=limits.output_tokens,
        together_tokens=together,
        seconds=seconds,
        decides=decides,
    )


def _expected_step_ms(picture: Picture | None, concurrency: int) -> float:
    """Between measured points on the line between them; beyond the widest up to twice its step.

    Guessed too short, a level shows too few answers and is driven again with the step then known.
    """
    if picture is None or not picture.law.points:
        return T.first_step_ms
    points = sorted(picture.law.points, key=lambda point: point.running)
    widest = points[-1]
    if concurrency >= widest.running:
        return widest.step_ms * min(2.0, concurrency / widest.running)
    above = next(point for point in points if point.running >= concurrency)
    below = [point for point in points if point.running < concurrency]
    if not below:
        return above.step_ms
    share = (concurrency - below[-1].running) / (above.running - below[-1].running)
    return below[-1].step_ms + share * (above.step_ms - below[-1].step_ms)
