import pytest

from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.exchange import Rank, exchanging
from tests.rules.server import Stage, check, server

WAITS = Rank(own_ms=2.1, exposed_ms=4.8)
SLOW = Rank(own_ms=4.6, exposed_ms=0.1)


def test_confirmed_when_the_late_rank_works_longer():
    answer = check("C502", exchanging(WAITS, SLOW, step_ms=7.0), tp=2)
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert "rank 1" in answer.headline
    assert "more slowly" in answer.headline
    assert any("C501" in out.rival for out in answer.ruled_out)
    assert answer.gain.low < answer.gain.tok_s < answer.gain.high


def test_more_kernels_are_more_work():
    more = Rank(own_ms=3.5, exposed_ms=0.1, kernels=168.0)
    answer = check("C502", exchanging(Rank(own_ms=2.1, exposed_ms=1.5), more, step_ms=3.7), tp=2)
    assert "more work" in answer.headline
    fewer = Rank(own_ms=3.5, exposed_ms=0.1, kernels=90.0)
    answer = check("C502", exchanging(Rank(own_ms=2.1, exposed_ms=1.5), fewer, step_ms=3.7), tp=2)
    assert "other work" in answer.headline


def test_a_rank_that_only_starts_late_leaves_its_host_as_the_rival():
    answer = check("C502", exchanging(WAITS, Rank(own_ms=2.1, exposed_ms=0.1), step_ms=7.0), tp=2)
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert any("H301" in rival.rival for rival in answer.rivals)


def test_one_late_rank_of_four_is_named():
    ranks = [WAITS, WAITS, SLOW, WAITS]
    answer = check("C502", exchanging(*ranks, step_ms=7.0, world_size=4), tp=4)
    assert isinstance(answer, Fired)
    assert "rank 2" in answer.headline


def test_ranks_keep_the_numbers_of_their_traces():
    answer = check("C502", exchanging(WAITS, SLOW, step_ms=7.0, first_rank=6), tp=2)
    assert "rank 7" in answer.headline


def test_nearest_rival_slow_links_make_all_wait_alike():
    alike = Rank(own_ms=2.0, exposed_ms=2.0)
    assert isinstance(check("C502", exchanging(alike, alike, step_ms=4.3), tp=2), Clear)


@pytest.mark.parametrize(("waits_ms", "kind"), [(0.3, Clear), (0.36, Fired)])
def test_the_share_of_the_step_decides(waits_ms, kind):
    ranks = Rank(own_ms=2.0, exposed_ms=0.1 + waits_ms), Rank(own_ms=2.3, exposed_ms=0.1)
    assert isinstance(check("C502", exchanging(*ranks, step_ms=3.3), tp=2), kind)


def test_cannot_tell_from_one_rank():
    assert isinstance(check("C502", exchanging(WAITS, step_ms=7.0), tp=2), CannotTell)


def test_cannot_tell_without_a_trace():
    assert isinstance(check("C502", server([Stage(running=8, step_ms=20.0)])), CannotTell)


def test_clear_on_one_gpu():
    alone = exchanging(Rank(own_ms=2.0, exposed_ms=0.0), world_size=1, collectives=0.0)
    assert isinstance(check("C502", alone), Clear)


def test_a_gain_needs_an_unprofiled_step_at_some_batch():
    assert check("C502", exchanging(WAITS, SLOW, step_ms=None), tp=2).gain is None
    here = check("C502", exchanging(WAITS, SLOW, step_ms=14.0), tp=2).gain
    there = check("C502", exchanging(WAITS, SLOW, step_ms=14.0, measured_at=8), tp=2).gain
    assert there.tok_s > 2 * here.tok_s  # from the same time a step to the same share of it


@pytest.mark.parametrize(("kernels", "more"), [(130.0, False), (131.2, True)])
def test_ranks_within_two_percent_of_kernels_run_the_same_program(kernels, more):
    late = Rank(own_ms=3.5, exposed_ms=0.1, kernels=kernels)
    answer = check("C502", exchanging(Rank(own_ms=2.1, exposed_ms=1.5), late, step_ms=3.7), tp=2)
    assert ("more work" in answer.headline) is more
