import msgspec
import pytest

from stepline.evidence.origin import Origin, Sourced
from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport, PrefillReport, TransferReport
from stepline.evidence.server import ServerFacts
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, server

LOG = "prefill.log"


def prefilled(inflight: int | None, *, new: int = 7, lines: int = 1, batches: int = 1) -> Run:
    """What the prefill server printed."""
    return Run(
        prefills=tuple(
            PrefillReport(
                seq=seq,
                origin=Origin(LOG, seq),
                new_sequences=new,
                new_tokens=241,
                queued=0,
                inflight=inflight,
                batches=batches,
            )
            for seq in range(1, lines + 1)
        )
    )


def moved(*rates: float) -> tuple[TransferReport, ...]:
    return tuple(TransferReport(origin=Origin(LOG, 90 + n), bytes_s=rate) for n, rate in enumerate(rates))


def transfers(file: str, *durations: float) -> tuple[TransferReport, ...]:
    return tuple(
        TransferReport(origin=Origin(file, n), duration_ms=took) for n, took in enumerate(durations, 1)
    )


def decoding(transferring: int | None, running: int, pool_usage: float | None = None) -> Run:
    """What the decode server printed."""
    line = DecodeReport(
        seq=1,
        origin=Origin("decode.log", 1),
        running=running,
        transferring=transferring,
        pool_usage=pool_usage,
    )
    return Run(decodes=(line,))


def test_fires_when_requests_pile_up_in_transfer():
    run = msgspec.structs.replace(prefilled(166), transfers=moved(3.6e6, 7.3e6))
    answer = check("C504", run, gpu=None)
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert "requests wait" in answer.headline
    assert answer.evidence[0].text == "166 requests are in transfer while a prefill batch takes 7 new ones"
    assert answer.evidence[1].text.endswith("3.60 MB to 7.30 MB a second")
    assert [rival.rival for rival in answer.rivals] == ["a decode server without room"]


@pytest.mark.parametrize(("inflight", "new", "batches"), [(27, 7, 1), (3, 0, 1), (39, 30, 3)])
def test_two_or_three_batches_on_their_way_are_ordinary(inflight, new, batches):
    answer = check("C504", prefilled(inflight, new=new, batches=batches), gpu=None)
    assert isinstance(answer, Clear)
    assert "few requests" in answer.reason


def test_a_folded_record_counts_as_its_batches():
    assert isinstance(check("C504", prefilled(40, new=30, batches=3), gpu=None), Fired)


def test_a_low_rate_alone_may_mean_little_to_send():
    assert isinstance(check("C504", Run(transfers=moved(3.6e6)), gpu=None), CannotTell)


def test_fires_when_more_requests_wait_for_their_cache_than_decode():
    answer = check("C504", decoding(40, 12), gpu=None)
    assert isinstance(answer, Fired)
    assert answer.evidence[0].text == "40 requests wait for their cache while 12 decode"
    assert isinstance(check("C504", decoding(12, 40), gpu=None), Clear)
    assert isinstance(check("C504", decoding(1, 0), gpu=None), Clear)


@pytest.mark.parametrize(("usage", "ruled_out"), [(0.2, True), (0.95, False), (None, False)])
def test_a_full_decode_server_is_the_rival(usage, ruled_out):
    answer = check("C504", decoding(40, 12, usage), gpu=None)
    assert isinstance(answer, Fired)
    assert ["20 % full" in ruled.by for ruled in answer.ruled_out] == [True] * ruled_out
    assert bool(answer.rivals) != ruled_out


def test_fires_on_transfers_slower_than_any_fast_link():
    run = Run(transfers=(*transfers("before.log", 1803.4, 1790.0), *transfers("after.log", 3.1)))
    answer = check("C504", run, gpu=None)
    assert isinstance(answer, Fired)
    assert "longer than a fast link" in answer.headline
    assert [(str(line.origin), line.text) for line in answer.evidence] == [
        ("before.log", "a transfer takes 1.80 s (median of 2)"),
        ("after.log", "a transfer takes 3.10 ms (median of 1)"),
    ]


def test_of_one_log_its_own_median_is_told_once():
    answer = check("C504", Run(transfers=transfers("before.log", 500.0)), gpu=None)
    assert isinstance(answer, Fired)
    assert len(answer.evidence) == 1


def test_quick_transfers_are_clear():
    answer = check("C504", Run(transfers=transfers("after.log", 3.1, 2.9, 900.0)), gpu=None)
    assert isinstance(answer, Clear)
    assert "3.10 ms" in answer.reason


def test_a_disaggregated_server_without_counts_cannot_be_judged():
    facts = ServerFacts(disaggregation=Sourced("decode", Origin("server_info.json")))
    run = msgspec.structs.replace(decoding(None, 8), server=facts)
    assert isinstance(check("C504", run, gpu=None), CannotTell)


def test_an_ordinary_server_is_clear():
    answer = check("C504", server([Stage(running=8, step_ms=5.0)]))
    assert isinstance(answer, Clear)
    assert "nothing speaks" in answer.reason


@pytest.mark.parametrize(("took_ms", "fires"), [(450.0, False), (550.0, True)])
def test_a_transfer_of_half_a_second_is_slow(took_ms, fires):
    run = msgspec.structs.replace(prefilled(0), transfers=transfers(LOG, took_ms, took_ms, took_ms))
    assert isinstance(check("C504", run, gpu=None), Fired) is fires
