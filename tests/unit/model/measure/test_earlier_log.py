"""A live recording's log holds other people's load from before: it is not the load's."""

import msgspec

from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.scheduler import PrefillReport, SchedulerEvent
from stepline.findings.diagnose import diagnose
from stepline.model.measure.log_clock import clock_time
from stepline.model.measure.preemption import retractions
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Setup
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


def troubled(*, own: bool):
    """An hour ago requests were retracted, answered with 5xx and prefilled at length; one was retracted under load."""

    def event(kind, at_s):
        return SchedulerEvent(
            seq=1, origin=Origin("server.log", 1), time_s=at_s, kind=kind, text=kind, amount=3.0
        )

    hour_ago = START_S - 3600
    prefill = PrefillReport(
        seq=2,
        origin=Origin("server.log", 2),
        time_s=hour_ago,
        new_tokens=9000,
        new_sequences=1,
        pending_tokens=90_000,
    )
    scrapes = tuple(
        EngineMetrics(
            origin=Origin("metrics.txt"), time_s=time_s, retracted_requests=retracted, server_errors=40.0
        )
        for time_s, retracted in ((START_S, 100.0), (START_S + 20, 103.0))
    )
    events = [event("retraction", hour_ago), event("disconnect", hour_ago), event("retraction", START_S + 5)]
    changes = {"events": tuple(events), "prefills": (prefill,), "metrics": scrapes}
    return assess(msgspec.structs.replace(recorded(own=own), **changes), Setup())


def test_trouble_of_earlier_requests_is_not_the_loads():
    picture = troubled(own=True)
    assert picture.run.prefills == ()
    assert retractions(picture.run).requests == 3
    assert [line.text for line in diagnose(picture).health] == ["1 × requests retracted from the KV pool"]


def test_trouble_in_a_log_beside_levels_of_other_tools_is_kept():
    picture = troubled(own=False)
    assert len(picture.run.prefills) == 1
    assert retractions(picture.run).requests == 6
    assert "1 × requests answered with a 5xx status" in [line.text for line in diagnose(picture).health]


def test_a_time_has_its_zone_where_the_client_tells_it():
    assert clock_time(recorded(own=True), START_S) == "08:00:00 UTC"
    assert clock_time(recorded(own=False), START_S) == "08:00:00 by the log's clock"
