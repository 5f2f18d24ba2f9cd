import pytest

from stepline.evidence.load import LeverTrial
from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.findings.outcome import CannotTell, Clear, Fired
from stepline.sources.engines.sglang.metrics import to_metrics
from tests.rules.server import check, diagnosed


def scraped(*states: tuple[float | None, float | None, float | None]) -> Run:
    """Scrapes of (running, queued, waiting for a grammar)."""
    return Run(
        metrics=tuple(
            EngineMetrics(
                origin=Origin("metrics.txt"),
                time_s=float(n),
                running=running,
                queued=queued,
                grammar_queued=grammar,
            )
            for n, (running, queued, grammar) in enumerate(states)
        )
    )


def test_fires_when_requests_wait_for_their_grammar():
    answer = check("H305", scraped((30, 2, 8), (28, None, 12), (0, 0, 0)))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert answer.headline.startswith("25 %")
    assert answer.evidence[0].text == "10 of 40 requests wait for a grammar, mean of 2 scrapes"


def test_an_engine_whose_requests_all_wait_counts_as_loaded():
    assert isinstance(check("H305", scraped((0, 0, 4))), Fired)


@pytest.mark.parametrize("grammar", [0, 2])
def test_a_few_in_passing_are_clear(grammar):
    answer = check("H305", scraped((30, 0, grammar)))
    assert isinstance(answer, Clear)
    assert "30" in answer.reason or "32" in answer.reason


@pytest.mark.parametrize("states", [(), ((30, 0, None),), ((0, 0, 0),), ((None, 0, 3),)])
def test_cannot_tell_without_the_gauge_under_load(states):
    assert isinstance(check("H305", scraped(*states)), CannotTell)


def test_the_gauge_is_read_from_the_engine():
    samples = [("sglang:num_grammar_queue_reqs", {}, 3.0), ("sglang:num_running_reqs", {}, 5.0)]
    assert to_metrics(samples, Origin("metrics.txt")).grammar_queued == 3


def test_even_an_a_b_makes_a_note_only():
    trial = LeverTrial(origin=Origin("ab.csv", 3), lever="response_format=removed", before=29.0, after=51.0)
    said = diagnosed(Run(levers=(trial,)))
    assert said.findings == ()
    assert any(note.text.startswith("H305") and "1.8×" in note.text for note in said.notes)
