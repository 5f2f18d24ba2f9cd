"""Where findings and comparisons turn: on both sides of each number."""

import msgspec
import pytest

from stepline.errors import UsageError
from stepline.evidence.load import LeverTrial
from stepline.evidence.origin import Origin
from stepline.findings.comparable import check_comparable
from stepline.findings.diagnosis import KnobValue, TargetView
from stepline.findings.knobs import changed_knobs
from stepline.findings.outcome import Clear, Fired
from tests.rules.server import Stage, check, diagnosed, level, picture, server


@pytest.mark.parametrize(("after", "refused"), [(0.38, False), (0.42, True)])
def test_a_cached_share_that_differs_by_a_tenth_is_another_load(after, refused):
    plain = level(8, 1450, 5.1, 25)
    sides = [
        picture(
            server(
                [Stage(running=8, step_ms=5.1)], levels=[msgspec.structs.replace(plain, cached_share=share)]
            )
        )
        for share in (0.3, after)
    ]
    if refused:
        with pytest.raises(UsageError, match="prefix cache"):
            check_comparable(sides[:1], sides[1:])
    else:
        check_comparable(sides[:1], sides[1:])


@pytest.mark.parametrize(("pool", "changed"), [(101_700, False), (102_300, True)])
def test_pools_within_two_percent_are_one_setting(pool, changed):
    sides = [
        TargetView(
            engine="sglang",
            version=None,
            model=None,
            gpu=None,
            layout={},
            knobs=(KnobValue("kv_capacity_tokens", str(size), ""),),
        )
        for size in (100_000, pool)
    ]
    assert bool(changed_knobs(*sides)) is changed


@pytest.mark.parametrize(("busy", "clear"), [(0.45, True), (0.55, False)])
def test_a_gpu_idle_for_most_of_the_step_makes_no_line_in_n(busy, clear):
    stages = [Stage(running=n, step_ms=2.1 + 0.72 * n, gpu_busy=busy, lines=9) for n in (1, 8, 32)]
    answer = check("K403", server(stages, context_length=512))
    assert (isinstance(answer, Clear) and "idles" in answer.reason) is clear


@pytest.mark.parametrize(("after", "confirmed"), [(32.5, False), (33.5, True)])
def test_a_lever_that_gains_a_tenth_confirms_its_cause(after, confirmed):
    trial = LeverTrial(origin=Origin("ab.csv", 2), lever="max_num_seqs=64", before=30.0, after=after)
    findings = diagnosed(msgspec.structs.replace(server([]), levers=(trial,))).findings
    assert ([finding.code for finding in findings] == ["S201"]) is confirmed


@pytest.mark.parametrize(("offered", "found"), [(32, True), (22, False)])
def test_what_gains_less_than_a_tenth_is_a_note(offered, found):
    """At 20 running of 22 the cap costs a twelfth; of 32 over a third."""
    stages = [Stage(running=20, step_ms=5.0, queued=offered - 20)]
    run = server(stages, levels=[level(offered, 3900, 5.05, 60)], max_running=20)
    assert isinstance(check("S201", run), Fired) or not found
    assert ("S201" in [finding.code for finding in diagnosed(run).findings]) is found
