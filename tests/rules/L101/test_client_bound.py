import msgspec
import pytest

from stepline.evidence.load import ClientHealth, LoadLevel
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, diagnosed, level, server

STEADY = [Stage(running=1, step_ms=5.0), Stage(running=8, step_ms=5.1)]


def driven(concurrency: int, *, late_share: float = 0.01, cpu_share: float = 0.2) -> LoadLevel:
    health = ClientHealth(
        cpu_share=cpu_share,
        us_per_token=8.0,
        lag_p50_ms=1.0,
        lag_p99_ms=900 * late_share,
        late_share=late_share,
    )
    return msgspec.structs.replace(level(concurrency, 195.0 * concurrency, 5.1, 40), health=health)


@pytest.mark.parametrize("overtaxed", [{"late_share": 0.3}, {"cpu_share": 0.97}])
def test_fires_first_when_the_client_could_not_keep_up(overtaxed):
    run = server(STEADY, levels=[driven(1), driven(8, **overtaxed)])
    answer = check("L101", run)
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert [line.text.split(" the client")[0] for line in answer.evidence] == ["at C = 8"]
    assert diagnosed(run).findings[0].code == "L101"


def test_the_rate_of_such_a_level_is_no_evidence():
    said = diagnosed(server(STEADY, levels=[driven(1), driven(8, late_share=0.3)]))
    assert any("late for 30 %" in doubt.text for doubt in said.doubts)
    assert said.load is None or said.load.concurrency != 8


def test_a_client_that_kept_up_is_clear():
    answer = check("L101", server(STEADY, levels=[driven(1), driven(8)]))
    assert isinstance(answer, Clear)
    assert "1.0 %" in answer.reason


def test_a_light_level_alone_does_not_fire():
    assert isinstance(check("L101", server(STEADY, levels=[driven(1, late_share=0.4), driven(8)])), Clear)


def test_a_level_driven_again_by_more_processes_is_clear():
    again = msgspec.structs.replace(driven(8), start_s=20.0)
    first = msgspec.structs.replace(driven(8, cpu_share=0.97), start_s=10.0)
    assert isinstance(check("L101", server(STEADY, levels=[driven(1), first, again])), Clear)


def test_other_tools_do_not_measure_themselves():
    assert isinstance(check("L101", server(STEADY, levels=[level(8, 1450, 5.1, 60)])), CannotTell)
