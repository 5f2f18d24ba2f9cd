import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.model.measure.closed_loop import ClosedLoop, decode_only, from_measured

POSITIVE = st.floats(0.1, 1000)


@given(st.floats(1, 512), POSITIVE, st.floats(2, 4000), st.floats(0, 100))
def test_a_loop_is_found_again_from_its_own_rate(running, step_ms, output_tokens, other_ms):
    loop = ClosedLoop(
        running=running, step_ms=step_ms, output_tokens=output_tokens, other_ms_per_request=other_ms
    )
    again = from_measured(running, step_ms, output_tokens, loop.tok_s)
    assert again.other_ms_per_request == pytest.approx(other_ms, rel=1e-6, abs=1e-6)
    assert 0 < again.decode_share <= 1


def test_the_rate_of_the_h200_twin_is_predicted_from_its_capped_run():
    capped = from_measured(8, 5.088, 127.57, 1464.8)
    uncapped = ClosedLoop(
        running=64, step_ms=6.569, output_tokens=127.8, other_ms_per_request=capped.other_ms_per_request
    )
    assert uncapped.tok_s == pytest.approx(6528, rel=0.02)


def test_endless_decoding_is_running_over_step():
    assert decode_only(8, 5.0).tok_s == pytest.approx(1600, rel=1e-6)
