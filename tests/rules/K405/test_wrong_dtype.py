import msgspec
import pytest

from stepline.evidence.load import LeverTrial
from stepline.evidence.origin import Origin
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.kernels import NVJET, SGEMM, Kernel, running
from tests.rules.server import LLAMA_8B, Stage, check, diagnosed, picture, server

WIDE = Kernel(name=SGEMM, busy_ms=10.6)
REST = Kernel(name="fused_rope_kernel", busy_ms=1.4)


def test_confirmed_when_most_matrix_time_is_in_32_bits():
    answer = check("K405", running(WIDE, REST, step_ms=12.1))
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"
    assert any("K404" in out.rival for out in answer.ruled_out)
    assert "sgemm_largek" in answer.evidence[0].text
    assert answer.gain.low < answer.gain.tok_s < answer.gain.high


def test_what_the_engine_says_is_cited():
    answer = check("K405", running(WIDE, REST, step_ms=12.1, weight_dtype="torch.float32"))
    assert any("torch.float32" in line.text for line in answer.evidence)


def test_clear_when_the_checkpoint_is_in_32_bits():
    model = {**LLAMA_8B, "torch_dtype": "float32"}
    assert isinstance(check("K405", running(WIDE, REST, model=model)), Clear)


def test_clear_on_narrow_products():
    assert isinstance(check("K405", running(Kernel(name=NVJET, busy_ms=2.5), REST)), Clear)


@pytest.mark.parametrize(("wide_ms", "kind"), [(0.2, Clear), (0.6, CannotTell), (5.0, Fired)])
def test_nearest_rival_some_wide_products_may_be_one_part_alone(wide_ms, kind):
    rows = Kernel(name=NVJET, busy_ms=3.0), Kernel(name=SGEMM, busy_ms=wide_ms)
    assert isinstance(check("K405", running(*rows)), kind)


def test_nearest_rival_wide_products_beside_narrow_ones_that_cover_all_weights_are_not_the_weights():
    # 15 GB of weights take an H200 3.1 ms at least
    rows = Kernel(name=NVJET, busy_ms=3.6), Kernel(name=SGEMM, busy_ms=5.0)
    answer = check("K405", running(*rows))
    assert isinstance(answer, CannotTell)
    assert "enough for all weights" in answer.needs


def test_narrow_products_cover_no_weights_where_many_requests_take_them_longer():
    """At 1,024 running the arithmetic of all weights takes an H200 16 ms: 3.6 ms are those of a part."""
    rows = Kernel(name=NVJET, busy_ms=3.6), Kernel(name=SGEMM, busy_ms=5.0)
    assert isinstance(check("K405", running(*rows, batch=1024)), Fired)


@pytest.mark.parametrize(("batch", "kind"), [(1, Fired), (4, Clear)])
def test_a_product_with_one_row_is_the_weights_only_where_one_request_runs(batch, kind):
    """Beside further requests it is attention, one request after the other (K404)."""
    single = (
        "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, false>(float)"
    )
    row = Kernel(name=single, busy_ms=10.6)
    assert isinstance(check("K405", running(row, REST, batch=batch, step_ms=12.1)), kind)


def test_wide_products_of_attention_are_not_the_weights():
    rows = Kernel(name=NVJET, busy_ms=3.0), Kernel(name=SGEMM, busy_ms=3.0, owner="attention")
    assert isinstance(check("K405", running(*rows)), Clear)


def test_wide_products_of_the_configured_context_are_not_the_weights():
    sized = Kernel(name=SGEMM, busy_ms=9.0, context_multiple=16.0)
    answer = check("K405", running(Kernel(name=NVJET, busy_ms=3.0), sized))
    assert isinstance(answer, Clear)
    mixed = check("K405", running(Kernel(name=NVJET, busy_ms=3.0), WIDE, sized))
    assert isinstance(mixed, Fired)
    assert "10.6 ms of 13.6 ms matrix time" in mixed.evidence[0].text


def test_a_gain_needs_an_unprofiled_step_and_the_gpu():
    assert check("K405", running(WIDE, REST)).gain is None
    assert check("K405", running(WIDE, REST, step_ms=12.1), gpu=None).gain is None
    assert check("K405", running(WIDE, REST, step_ms=12.1, measured_at=8)).gain is not None


def test_nearest_rival_products_over_the_configured_context_are_not_the_weights():
    sized = Kernel(name=SGEMM, busy_ms=10.6, context_multiple=2.0)
    assert isinstance(check("K405", running(sized, REST, step_ms=12.1)), Clear)


def test_cannot_tell_without_the_model():
    run = msgspec.structs.replace(running(WIDE, REST), model_config=None)
    assert isinstance(check("K405", run), CannotTell)


def test_cannot_tell_without_a_trace():
    assert isinstance(check("K405", server([Stage(running=8, step_ms=20.0)])), CannotTell)


@pytest.mark.parametrize(("after", "codes"), [(295.4, ["K405"]), (60.0, [])])
def test_an_experiment_in_which_32_bits_are_faster_confirms_it(after, codes):
    trial = LeverTrial(
        origin=Origin("ab.csv", 2),
        lever="arm=fp32",
        before=80.5,
        after=after,
        measure="tok_s",
        concurrency=16,
    )
    answer = diagnosed(msgspec.structs.replace(server([], model=None), levers=(trial,)))
    assert [finding.code for finding in answer.findings] == codes


def test_at_the_slow_end_narrow_products_take_half_as_long_again_as_their_bytes():
    run = running(WIDE, REST, step_ms=12.1)
    seen = picture(run)
    floor = sum(part.ms for part in seen.floors.here.components if part.name != "kv read")
    rate, gain = seen.rate_tok_s, check("K405", run).gain
    slow_ms = 12.1 - 10.6 + max(1.5 * floor, 10.6 / 2)
    assert gain.low == pytest.approx(rate * 12.1 / slow_ms, rel=0.01)


@pytest.mark.parametrize(("narrow_ms", "whole"), [(0.8, True), (1.6, False)])
def test_from_nine_tenths_of_matrix_time_on_the_whole_model_was_widened(narrow_ms, whole):
    """Then the rest of the step is wide too, and its floor is the fast end."""
    narrow = Kernel(name=NVJET, busy_ms=narrow_ms)
    run = running(WIDE, narrow, Kernel(name="fused_rope_kernel", busy_ms=4.0), step_ms=17.0)
    gain, floor_ms = check("K405", run).gain, picture(run).floors.here.total_ms
    assert (gain.high == pytest.approx(4000 / floor_ms, rel=0.01)) is whole
