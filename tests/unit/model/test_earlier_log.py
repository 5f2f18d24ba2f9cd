"""A live recording's log holds other people's load from before: it is not the load's."""

import msgspec

from stepline.findings.diagnose import diagnose
from stepline.model.assess import assess
from stepline.model.picture import Setup
from tests.rules.server import Stage, level, server

START_S = 1_800_000_000.0


def recorded(*, own: bool):
    """Eight streams of 600 tokens after an hour of eight requests of 20,000; by the log alone."""
    stages = [
        Stage(running=8, step_ms=21.0, context=20_000, lines=50),
        Stage(running=1, step_ms=5.0, context=600),
        Stage(running=8, step_ms=6.0, context=600, lines=12),
    ]
    run = server(stages, levels=[level(8, 1200, 6.1, 30)])
    history = 50
    decodes = tuple(
        msgspec.structs.replace(decode, time_s=START_S + n if n >= history else START_S - 3600 + n)
        for n, decode in enumerate(run.decodes)
    )
    levels = tuple(
        msgspec.structs.replace(
            each, tool="stepline" if own else None, start_s=START_S + 0.4, end_s=START_S + 20
        )
        for each in run.levels
    )
    return msgspec.structs.replace(run, decodes=decodes, levels=levels)


def test_the_step_and_context_are_the_loads():
    picture = assess(recorded(own=True), Setup())
    assert picture.step.measured_ms == 6.0
    assert picture.context.tokens < 700
    assert len(picture.windows.earlier) > 40


def test_requests_of_another_context_are_no_change_since_when():
    health = diagnose(assess(recorded(own=True), Setup())).health
    assert not [line.text for line in health if "changed" in line.text]


def test_a_log_beside_levels_of_other_tools_is_used_whole():
    picture = assess(recorded(own=False), Setup())
    assert picture.windows.earlier == ()
    assert picture.step.measured_ms > 15
