import msgspec
import pytest

from stepline.findings.outcome import CannotTell, Clear, Fired
from stepline.model.signs.communication import collective_floor_us
from tests.rules.exchange import Rank, exchanging
from tests.rules.server import Stage, check, picture, server

SLOW = Rank(own_ms=1.6, exposed_ms=0.6)


def test_confirmed_when_all_ranks_show_data_moving():
    answer = check("C501", exchanging(SLOW, SLOW, transfer_us=37.0), tp=2)
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert any("C502" in out.rival for out in answer.ruled_out)
    assert answer.rivals == ()
    assert answer.gain.low <= answer.gain.tok_s < answer.gain.high
    assert "0.592 ms of 2.40 ms" in answer.evidence[0].text


def test_steps_that_verify_drafts_are_steps_too():
    run = exchanging(SLOW, SLOW, transfer_us=37.0)
    ranks = tuple(
        msgspec.structs.replace(
            rank, groups=tuple(msgspec.structs.replace(group, kind="verify") for group in rank.groups)
        )
        for rank in run.trace.ranks
    )
    verified = msgspec.structs.replace(run, trace=msgspec.structs.replace(run.trace, ranks=ranks))
    answer = check("C501", verified, tp=2)
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"


def test_suspected_from_one_rank_for_waiting_looks_the_same_there():
    answer = check("C501", exchanging(SLOW), tp=2)
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert any("C502" in rival.rival for rival in answer.rivals)


def test_nearest_rival_ranks_that_take_turns_being_late_are_clear():
    assert isinstance(check("C501", exchanging(SLOW, SLOW, transfer_us=8.0), tp=2), Clear)


def test_nearest_rival_one_late_rank_is_clear():
    late = Rank(own_ms=2.1, exposed_ms=0.1)
    assert isinstance(check("C501", exchanging(SLOW, late), tp=2), Clear)


def test_clear_at_the_usual_latency_of_these_gpus():
    # 64 all-reduces at 5 µs are 13 % of the step, and all of it floor
    answer = check("C501", exchanging(Rank(own_ms=2.0, exposed_ms=0.32), collectives=64.0), tp=2)
    assert isinstance(answer, Clear)
    assert "fewer GPUs" in answer.reason


@pytest.mark.parametrize(("exposed_ms", "kind"), [(0.2, Clear), (0.34, Fired)])
def test_the_share_of_the_step_decides(exposed_ms, kind):
    assert isinstance(check("C501", exchanging(Rank(own_ms=1.6, exposed_ms=exposed_ms)), tp=2), kind)


@pytest.mark.parametrize(("collectives", "kind"), [(64.0, Clear), (16.0, Fired)])
def test_without_a_published_latency_the_slowest_one_stands_in(collectives, kind):
    run = exchanging(Rank(own_ms=0.6, exposed_ms=1.7), collectives=collectives, step_ms=None)
    assert isinstance(check("C501", run, gpu="mi300x", tp=8), kind)


def test_the_floor_grows_with_the_bytes_of_the_batch():
    seen = picture(exchanging(SLOW), tp=2)
    small, large = (collective_floor_us(seen, batch)[0] for batch in (1, 4096))
    assert small == pytest.approx(4.5, abs=0.1)
    assert large > small + 50


def test_without_model_or_batch_the_latency_alone_is_the_floor():
    seen = picture(exchanging(SLOW), tp=2)
    assert collective_floor_us(seen, None)[0] == 4.5
    bare = msgspec.structs.replace(exchanging(SLOW), model_config=None)
    assert collective_floor_us(picture(bare, tp=2), 4096)[0] == 4.5


def test_without_an_unprofiled_step_the_traced_one_is_the_measure():
    assert isinstance(check("C501", exchanging(SLOW, step_ms=None), tp=2), Fired)


def test_at_another_batch_the_saving_is_between_the_same_time_and_the_same_share():
    assert check("C501", exchanging(SLOW, step_ms=None), tp=2).gain is None
    here = check("C501", exchanging(SLOW, step_ms=4.8), tp=2).gain
    there = check("C501", exchanging(SLOW, step_ms=4.8, measured_at=8), tp=2).gain
    assert there.tok_s > 2 * here.tok_s  # the same share of 4.8 ms is more than the 0.6 ms of the traced step
    assert there.low == pytest.approx(2 * here.low)


def test_at_a_larger_batch_all_that_the_step_grew_by_may_be_data_on_the_way():
    gain = check("C501", exchanging(SLOW, step_ms=6.6, measured_at=16), tp=2).gain
    # 0.6 ms of the traced 2.2, and at best the 4.4 ms more at 16: 1.6 ms of own work are left
    assert gain.high == pytest.approx(1000 * 16 / 1.6, rel=0.02)


def test_other_steps_of_the_same_batch_are_left_alone():
    run = exchanging(SLOW, SLOW, transfer_us=37.0)
    ranks = []
    for rank in run.trace.ranks:
        (decode,) = rank.groups
        prefill = msgspec.structs.replace(decode, kind="prefill", exposed_communication_ms=0.0)
        larger = msgspec.structs.replace(decode, batch=64, exposed_communication_ms=0.0)
        ranks.append(msgspec.structs.replace(rank, groups=(prefill, decode, larger)))
    mixed = msgspec.structs.replace(run, trace=msgspec.structs.replace(run.trace, ranks=tuple(ranks)))
    assert check("C501", mixed, tp=2) == check("C501", run, tp=2)


def test_cannot_tell_from_a_trace_that_contradicts_the_unprofiled_step():
    assert isinstance(check("C501", exchanging(SLOW, step_ms=1.0), tp=2), CannotTell)


def test_the_ranks_of_the_trace_count_where_the_layout_was_not_told():
    assert isinstance(check("C501", exchanging(SLOW)), Fired)


def test_cannot_tell_from_rates():
    assert isinstance(check("C501", server([Stage(running=8, step_ms=20.0)])), CannotTell)


def test_clear_on_one_gpu():
    assert isinstance(check("C501", server([Stage(running=8, step_ms=20.0)], tp=1)), Clear)
    alone = exchanging(Rank(own_ms=2.0, exposed_ms=0.0), world_size=1, collectives=0.0)
    assert isinstance(check("C501", alone), Clear)


def test_cannot_tell_when_several_gpus_show_no_collectives():
    silent = exchanging(Rank(own_ms=2.0, exposed_ms=0.0), collectives=0.0)
    assert isinstance(check("C501", silent), CannotTell)
