"""What is measured next, from what is known so far."""

import msgspec
import pytest

from stepline.evidence.origin import Origin, Sourced
from stepline.findings.diagnose import diagnose
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Setup
from stepline.plan.experiment import Experiment, Limits, Stop
from stepline.plan.policy import T as POLICY
from stepline.plan.policy import next_experiment, outline
from tests.rules.server import Stage, level, server

LIMITS = Limits(budget_s=180, profile=True)


def known(stages, levels):
    """Picture and diagnosis of a server whose levels turned over."""
    counted = [msgspec.structs.replace(each, requests=200) for each in levels]
    picture = assess(server(stages, levels=counted), Setup(gpu="h200"))
    return picture, diagnose(picture)


def done(*streams: int, **changes) -> tuple[Experiment, ...]:
    plain = Experiment(
        kind="level",
        concurrency=1,
        input_tokens=512,
        output_tokens=192,
        together_tokens=160,
        seconds=6.0,
        decides="",
    )
    return tuple(msgspec.structs.replace(plain, concurrency=count, **changes) for count in streams)


SOUND = (
    [Stage(running=1, step_ms=4.9), Stage(running=8, step_ms=5.1), Stage(running=64, step_ms=6.6)],
    [level(1, 195, 4.9, 20), level(8, 1450, 5.1, 25), level(64, 7600, 6.8, 60)],
)


def test_the_ends_of_the_law_come_first():
    first = next_experiment(None, None, (), LIMITS)
    second = next_experiment(None, None, done(1), LIMITS)
    assert (first.concurrency, second.concurrency) == (1, POLICY.many)


def test_at_a_cap_the_third_level_is_the_cap():
    stages = [Stage(running=1, step_ms=4.9), Stage(running=8, step_ms=5.1, queued=56)]
    picture, found = known(stages, [level(1, 195, 4.9, 20), level(64, 1450, 5.1, 4900)])
    assert next_experiment(picture, found, done(1, 64), LIMITS).concurrency == 8


def test_a_sound_server_is_left_alone_after_three_levels():
    picture, found = known(*SOUND)
    assert found.findings == ()
    assert isinstance(next_experiment(picture, found, done(1, 64, 8), LIMITS), Stop)


def test_a_suspected_cause_is_traced_under_its_load():
    stages = [Stage(running=n, step_ms=2.1 + 0.72 * n) for n in (1, 8, 32)]
    levels = [level(1, 350, 2.8, 20), level(8, 1000, 7.9, 40), level(32, 1270, 25.2, 90)]
    run = server(stages, levels=[msgspec.structs.replace(each, requests=200) for each in levels])
    picture = assess(run, Setup(gpu="h200", context_length=131072))
    found = diagnose(picture)
    assert [finding.status for finding in found.findings] == ["suspected"]
    limits = msgspec.structs.replace(LIMITS, concurrency=(1, 32, 8))
    profile = next_experiment(picture, found, done(1, 32, 8), limits)
    assert (profile.kind, profile.concurrency) == ("profile", 32)
    assert profile.together_tokens * 25.2 / 1000 >= profile.seconds - 1, "no prompt while the trace is taken"
    pool = msgspec.structs.replace(
        run.server, kv_capacity_tokens=Sourced(32 * 1000, Origin("server_info.json"))
    )
    picture = assess(msgspec.structs.replace(run, server=pool), Setup(gpu="h200", context_length=131072))
    small = next_experiment(picture, found, done(1, 32, 8), limits)
    assert small.input_tokens + small.together_tokens + small.output_tokens == 1000, "all of them run at once"


def test_without_a_profiler_another_context_decides():
    stages = [Stage(running=n, step_ms=2.1 + 0.72 * n) for n in (1, 8, 32)]
    levels = [level(1, 350, 2.8, 20), level(8, 1000, 7.9, 40), level(32, 1270, 25.2, 90)]
    picture, found = known(stages, levels)
    limits = msgspec.structs.replace(LIMITS, concurrency=(1, 32, 8), profile=False)
    longer = next_experiment(picture, found, done(1, 32, 8), limits)
    assert (longer.kind, longer.concurrency, longer.input_tokens) == ("level", 8, 3072)


def test_another_context_is_of_the_middle_level_however_often_the_load_was_repeated():
    stages = [Stage(running=n, step_ms=2.1 + 0.72 * n) for n in (1, 8, 32)]
    levels = [level(1, 350, 2.8, 20), level(8, 1000, 7.9, 40), level(32, 1270, 25.2, 90)]
    picture, found = known(stages, levels)
    limits = msgspec.structs.replace(LIMITS, concurrency=(1, 32, 8), profile=False)
    assert next_experiment(picture, found, done(1, 32, 8, 32), limits).concurrency == 8


def slow_to_turn_over(requests: int, **changes):
    """A load whose answers are longer than its level was."""
    levels = [
        msgspec.structs.replace(each, requests=200, duration_s=6.0) for each in (SOUND[1][0], SOUND[1][1])
    ]
    load = msgspec.structs.replace(SOUND[1][2], requests=requests, duration_s=6.0, **changes)
    picture = assess(server(SOUND[0], levels=[*levels, load]), Setup(gpu="h200"))
    return picture, diagnose(picture)


def test_a_load_that_did_not_turn_over_is_driven_for_as_long_as_it_needs():
    again = next_experiment(*slow_to_turn_over(requests=16), done(1, 64, 8), LIMITS)
    assert again.concurrency == 64
    assert 12 <= again.seconds <= 20, "16 answers in 6 s are 32 in 12"


@pytest.mark.parametrize(
    "changes", [{"requests": 4}, {"requests": 0, "ttft_p99_ms": 40_000.0}], ids=["slow", "late"]
)
def test_a_load_that_cannot_turn_over_is_not_repeated(changes):
    following = next_experiment(*slow_to_turn_over(**changes), done(1, 64, 8), LIMITS)
    assert isinstance(following, Stop)


def test_long_prompts_get_a_shorter_context_beside_them():
    limits = msgspec.structs.replace(LIMITS, input_tokens=24_000, context_tokens=131_072)
    assert outline(limits)[-1].input_tokens == 4_000


def test_a_level_that_showed_nothing_is_tried_once_more():
    picture, found = known(SOUND[0][:1], [level(1, 195, 4.9, 20)])
    limits = msgspec.structs.replace(LIMITS, concurrency=(1, 32))
    again = next_experiment(picture, found, done(1, 32), limits)
    assert again.concurrency == 32
    assert not isinstance(next_experiment(picture, found, done(1, 32, 32), limits), Experiment) or (
        next_experiment(picture, found, done(1, 32, 32), limits).concurrency != 32
    )


def test_the_budget_is_never_passed():
    picture, found = known(*SOUND)
    short = msgspec.structs.replace(LIMITS, budget_s=20)
    stop = next_experiment(picture, found, done(1, 64, seconds=9.0), short)
    assert isinstance(stop, Stop)
    assert "budget" in stop.reason


@pytest.mark.parametrize("context", [700, 2048, 8192])
def test_prompts_and_answers_fit_the_server(context):
    limits = msgspec.structs.replace(LIMITS, context_tokens=context)
    for experiment in outline(limits):
        longest = experiment.input_tokens + experiment.together_tokens + experiment.output_tokens
        assert longest <= max(context, 16 + 160 + 192), experiment
