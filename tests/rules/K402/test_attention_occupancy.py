import msgspec
import pytest

from stepline.evidence.load import StepRow
from stepline.evidence.origin import Origin
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, server


def _contexts(slope_us_per_token: float):
    """Batch 1 at four contexts on a step of 7 ms, growing by so many microseconds a token."""
    return [
        Stage(running=1, step_ms=7 + slope_us_per_token * c / 1000, context=c)
        for c in (1000, 4000, 16000, 32000)
    ]


def test_fires_when_the_cache_is_read_several_times_more_slowly_than_the_weights():
    answer = check("K402", server(_contexts(0.44)))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert any("K404" in rival.rival for rival in answer.rivals)
    assert answer.gain is not None


def test_it_needs_no_gpu():
    assert isinstance(check("K402", server(_contexts(0.44)), gpu=None), Fired)


def test_nearest_rival_honest_cache_reads_are_clear():
    assert isinstance(check("K402", server(_contexts(0.059))), Clear)


def test_clear_on_a_flat_step():
    assert isinstance(check("K402", server(_contexts(0.0))), Clear)


def test_clear_when_the_slow_read_costs_little():
    stages = [Stage(running=1, step_ms=7 + 0.44 * c / 1000, context=c) for c in (100, 600)]
    assert isinstance(check("K402", server(stages)), Clear)


def test_cannot_tell_from_one_context():
    assert isinstance(check("K402", server([Stage(running=1, step_ms=7.0)])), CannotTell)


def test_cannot_tell_without_the_model():
    assert isinstance(check("K402", server(_contexts(0.44), model=None)), CannotTell)


@pytest.mark.parametrize(("rates", "kind"), [((147.64, 126.41), Fired), ((144.17, 143.35), Clear)])
def test_two_stated_rates_are_enough(rates, kind):
    rows = tuple(
        StepRow(origin=Origin("rates.csv", line), running=1, tok_s=rate, context_tokens=context)
        for line, (rate, context) in enumerate(zip(rates, (234, 2154), strict=True), start=2)
    )
    assert isinstance(check("K402", msgspec.structs.replace(server([]), step_rows=rows), gpu=None), kind)
