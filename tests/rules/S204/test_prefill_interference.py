import msgspec
import pytest

from stepline.evidence.origin import Origin
from stepline.evidence.scheduler import PrefillReport
from stepline.findings.outcome import CannotTell, Clear, Fired
from stepline.model.signs.recompute import own_prompt_floor_ms
from tests.rules.exchange import Rank, exchanging
from tests.rules.kernels import NVJET, SGEMM, Kernel, running
from tests.rules.server import Stage, check, level, picture, server


def _run(tok_s: float, busy: float | None = 0.98, model: bool = True, *, heaviest_first: bool = False):
    """One stream, then 64, or the other way round."""
    stages = [Stage(running=1, step_ms=4.9, lines=9), Stage(running=64, step_ms=6.6, lines=9, gpu_busy=busy)]
    stages = stages[::-1] if heaviest_first else stages
    levels = [level(1, 200, 4.9, 16), level(64, tok_s, 64 * 1000 / tok_s - 2, 270)]
    return server(stages, levels=levels) if model else server(stages, levels=levels, model=None)


def test_fires_when_prefill_takes_several_times_its_floor_on_a_busy_gpu():
    answer = check("S204", _run(2500))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert answer.gain is not None
    assert answer.gain.tok_s > 2500


def test_the_open_rival_says_what_would_decide_it():
    measured, unmeasured = (check("S204", _run(2500, busy=busy)).rivals[0] for busy in (0.98, None))
    assert "a trace of the prefills" in measured.decided_by
    assert "busy share" in unmeasured.decided_by


def test_prefill_at_a_low_clock_is_the_clock_s_doing():
    """At 4,000 tok/s prefill takes 5.2 times its floor, which is over three times as long at 30 % of the clock."""
    run = _run(4000)
    assert isinstance(check("S204", run), Fired)
    slow = tuple(msgspec.structs.replace(sample, sm_clock_mhz=594.0) for sample in run.gpu_samples)
    assert isinstance(check("S204", msgspec.structs.replace(run, gpu_samples=slow)), Clear)


def test_clear_when_prefill_is_near_its_floor():
    answer = check("S204", _run(6500))
    assert isinstance(answer, Clear)
    assert "floor" in answer.reason


def test_nearest_rival_an_idle_gpu_is_the_hosts_doing():
    answer = check("S204", _run(2500, busy=0.4))
    assert isinstance(answer, Clear)
    assert "host" in answer.reason


def test_cannot_tell_without_a_client_level():
    assert isinstance(check("S204", server([Stage(running=64, step_ms=6.6)])), CannotTell)


def test_cannot_tell_without_the_model():
    assert isinstance(check("S204", _run(2500, model=False)), CannotTell)


def _chunked(pending: int | None):
    """64 prompts of 256 tokens in chunks of 64, and what is still pending after each chunk but the last."""
    run = _run(2500)
    prefills = tuple(
        PrefillReport(
            seq=12,
            origin=Origin("server.log", 12),
            new_sequences=1,
            new_tokens=64,
            pending_tokens=pending if number % 4 < 3 else 0,
        )
        for number in range(1280)
    )
    return msgspec.structs.replace(run, prefills=prefills)


def test_a_prompt_in_chunks_counts_once():
    """At 2,500 tok/s each request has 25 ms beside its steps: many times one prompt's floor, and few chunks' floors."""
    assert isinstance(check("S204", _chunked(pending=64)), Fired)


def _beside(prompts_s: float):
    """64 streams at 2,500 tok/s (19.5 answers a second) for eight seconds, beside prompts of 8,000 tokens."""
    run = _run(2500)
    own = PrefillReport(
        seq=12, origin=Origin("server.log", 12), new_sequences=156, new_tokens=156 * 256, pending_tokens=0
    )
    long = msgspec.structs.replace(
        own, new_sequences=round(8 * prompts_s), new_tokens=round(64_000 * prompts_s)
    )
    return msgspec.structs.replace(run, prefills=(own, long))


def test_prompts_that_others_send_need_their_time_too():
    """Five a second need 0.6 s of each second by their FLOPs alone; one in two seconds is lost among the load's own."""
    assert isinstance(check("S204", _beside(0.5)), Fired)
    answer = check("S204", _beside(5))
    assert isinstance(answer, Clear)
    assert "others" in answer.reason


def test_many_short_prompts_of_others_take_longer_than_one_of_as_many_tokens():
    """Each reads the weights: 195 a second of 30 tokens fill the time, and one of all their tokens is done in 4 ms."""
    long, own = 30 * 1560, 156 * 256
    run = _run(2500)
    line = PrefillReport(
        seq=12, origin=Origin("server.log", 12), new_sequences=1716, new_tokens=own + long, pending_tokens=0
    )
    assert isinstance(check("S204", msgspec.structs.replace(run, prefills=(line,))), Clear)
    whole = msgspec.structs.replace(line, new_sequences=156)
    assert isinstance(check("S204", msgspec.structs.replace(run, prefills=(whole,))), Fired)


def test_prompts_that_others_sent_beside_another_load_do_not_count():
    """64 streams first, then one beside five long prompts a second."""
    run = _run(2500, heaviest_first=True)
    long = PrefillReport(
        seq=12, origin=Origin("server.log", 12), new_sequences=40, new_tokens=320_000, pending_tokens=0
    )
    assert isinstance(check("S204", msgspec.structs.replace(run, prefills=(long,))), Fired)


@pytest.mark.parametrize(("beside", "answer"), [(64, Clear), (1, Fired)])
def test_prompts_that_others_send_show_in_the_rate_of_prefills_that_lines_report(beside, answer):
    """The load's own are 5,000 tokens a second; 45,000 beside 64 streams are others', beside one stream no matter."""
    run = _run(2500)
    decodes = tuple(
        msgspec.structs.replace(line, prefill_tok_s=45_000.0) if line.running == beside else line
        for line in run.decodes
    )
    assert isinstance(check("S204", msgspec.structs.replace(run, decodes=decodes)), answer)


def test_others_prompts_still_come_once_prefill_is_quick():
    few, more = check("S204", _beside(0.5)), check("S204", _beside(1.5))
    assert isinstance(few, Fired)
    assert isinstance(more, Fired)
    assert few.gain.tok_s > more.gain.tok_s


@pytest.mark.parametrize(
    ("ranks", "cause"),
    [
        ((Rank(own_ms=1.6, exposed_ms=0.9),), "C501"),
        ((Rank(own_ms=1.6, exposed_ms=0.9), Rank(own_ms=2.4, exposed_ms=0.1)), "C502"),
    ],
)
def test_nothing_is_concluded_where_a_trace_shows_what_stretches_prompts_too(ranks, cause):
    traced = msgspec.structs.replace(_run(2500), trace=exchanging(*ranks).trace)
    answer = check("S204", traced, tp=2)
    assert isinstance(answer, CannotTell)
    assert cause in answer.needs


@pytest.mark.parametrize(("kernel", "kind"), [(SGEMM, CannotTell), (NVJET, Fired)])
def test_products_in_32_bits_stretch_prompts_too_and_narrow_ones_do_not(kernel, kind):
    traced = running(Kernel(name=kernel, busy_ms=6.0), batch=64, step_ms=6.6).trace
    answer = check("S204", msgspec.structs.replace(_run(2500), trace=traced))
    assert isinstance(answer, kind)
    assert kind is Fired or "K405" in answer.needs


def _crowded(
    budget: int = 64,
    *,
    prompt: int = 256,
    queued: int = 9,
    pool: float = 0.04,
    mode: str | None = "full",
    **facts: object,
):
    """16 of 25 requests run in steps of 18.8 ms, each with prompts of `prompt` tokens."""
    stage = Stage(
        running=16, step_ms=18.8, lines=9, queued=queued, pool_usage=pool, gpu_busy=0.99, graph=None
    )
    facts |= {"chunked_prefill_tokens": budget} | ({} if mode is None else {"graph_mode": mode})
    client = msgspec.structs.replace(level(25, 800, 19.0, 700), input_tokens=prompt, start_s=0.0, end_s=9.0)
    return check("S204", server([stage], levels=[client], **facts))


def test_suspected_when_requests_wait_for_room_in_small_forwards():
    answer = _crowded()
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert "64 tokens" in answer.headline
    assert answer.gain.low < answer.gain.tok_s < answer.gain.high
    assert [rival.rival for rival in answer.rivals] == ["S201 batch-capped"]


def test_a_cap_above_the_batch_is_ruled_out_beside_small_forwards():
    answer = _crowded(max_running=64)
    assert isinstance(answer, Fired)
    assert any("cap of 64" in ruled.by for ruled in answer.ruled_out)
    assert answer.rivals == ()


def test_small_forwards_cost_the_streams_that_wait_and_perhaps_the_length_of_the_steps():
    """16 of 25 streams at 800 tok/s are 1,250 together; ordinary steps of this model take a third of 18.8 ms."""
    gain = _crowded().gain
    assert 1150 < gain.tok_s < 1250
    assert gain.low == pytest.approx((800 + gain.tok_s) / 2)
    assert gain.high > 3 * gain.tok_s


def test_no_more_is_promised_than_the_client_s_own_streams():
    """Others may wait in the same queue: their answers are not this client's."""
    assert _crowded(queued=20).gain == _crowded().gain


@pytest.mark.parametrize(
    "other",
    [
        {"budget": 512},  # a whole prompt fits beside the answers
        {"queued": 2},  # the others are not in the queue
        {"budget": 4096, "prompt": 8192},  # forwards as full as pays
        {"pool": 0.97},
        {"mode": None},  # prompts have forwards of their own
        {"max_running": 16},
    ],
)
def test_nearest_rivals_hold_requests_back_for_another_reason(other):
    assert not isinstance(_crowded(**other), Fired)


def test_an_ordinary_prompt_takes_twice_its_floor():
    run = _run(2500)
    seen = picture(run)
    loop, own_ms = seen.loop, own_prompt_floor_ms(seen)
    gain = check("S204", run).gain
    assert gain.tok_s == pytest.approx(msgspec.structs.replace(loop, other_ms_per_request=2 * own_ms).tok_s)


@pytest.mark.parametrize(("over", "told"), [(0.45, False), (0.6, True)])
def test_prompts_of_others_count_from_half_a_request_s_own_tokens_on(over, told):
    """A level's edges hold some of its own prompts more than it finished."""
    run, finished_s = _run(2500), 2500 / 128
    decodes = tuple(
        msgspec.structs.replace(line, prefill_tok_s=(1 + over) * 256 * finished_s) for line in run.decodes
    )
    answer = check("S204", msgspec.structs.replace(run, decodes=decodes))
    assert ("others" in answer.evidence[0].text) is told
