import msgspec
import pytest

from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, diagnosed, level, server

STEADY = [Stage(running=48, step_ms=7.0)]


LEVELS = (level(48, 6040, 7.2, 60),)


def _run(cached: float | None, levels=LEVELS):
    metrics = EngineMetrics(origin=Origin("metrics.txt"), prefill_tokens=10_000, cached_tokens=cached)
    return server(STEADY, levels=levels, metrics=metrics)


def test_suspected_when_most_of_the_prompts_were_cached():
    answer = check("L102", _run(90_000))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert answer.recoverable_tok_s is None


def test_clear_for_unique_prompts():
    assert isinstance(check("L102", _run(19)), Clear)


def test_clear_without_a_client():
    assert isinstance(check("L102", _run(90_000, levels=())), Clear)


def test_the_client_at_this_load_outweighs_counters_since_start():
    told = msgspec.structs.replace(level(48, 6040, 7.2, 60), cached_share=0.01)
    assert isinstance(check("L102", _run(90_000, levels=(told,))), Clear)


def test_cannot_tell_when_nobody_counts():
    assert isinstance(check("L102", _run(None)), CannotTell)


def test_nearest_rival_a_busy_prefill_is_not_a_cache():
    assert "L102" not in [finding.code for finding in diagnosed(_run(0)).findings]


@pytest.mark.parametrize(("share", "fires"), [(0.27, False), (0.33, True)])
def test_prefill_is_shortened_from_three_tenths_cached_on(share, fires):
    assert isinstance(check("L102", _run(10_000 * share / (1 - share))), Fired) is fires
