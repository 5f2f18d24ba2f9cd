import msgspec
import pytest

from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.kernels import NVJET, SPLITKV, Kernel, running
from tests.rules.server import LLAMA_8B, Stage, check, diagnosed, server

WEIGHTS = Kernel(name=NVJET, busy_ms=3.0)


def _attention(busy_ms: float, blocks: tuple[int, int, int] | None) -> Kernel:
    return Kernel(name=SPLITKV, busy_ms=busy_ms, grid=blocks)


def _running(busy_ms: float, blocks: tuple[int, int, int] | None, **options: object):
    """Four sequences of 32,768 tokens: 17 GB of cache, 3.6 ms at least; 32 query heads on 8 key heads."""
    return running(
        WEIGHTS, _attention(busy_ms, blocks), batch=4, context=32768, step_ms=busy_ms + 3.1, **options
    )


def test_fires_when_each_query_head_has_blocks_and_attention_takes_as_long():
    answer = check("K407", _running(16.0, (4, 32, 8)))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert "4 times" in answer.headline
    assert any("K402" in rival.rival for rival in answer.rivals)


def test_it_makes_notes_only():
    answer = diagnosed(_running(16.0, (4, 32, 8)))
    assert "K407" not in [finding.code for finding in answer.findings]
    assert any(note.text.startswith("K407") and "no capture" in note.text for note in answer.notes)


def test_nearest_rival_blocks_for_key_heads_are_clear():
    assert isinstance(check("K407", _running(16.0, (4, 8, 3))), Clear)


@pytest.mark.parametrize(("busy_ms", "kind"), [(12.0, Clear), (16.0, Fired)])
def test_the_time_of_the_further_reads_decides(busy_ms, kind):
    assert isinstance(check("K407", _running(busy_ms, (4, 32, 8))), kind)


def test_clear_when_no_keys_are_shared():
    model = {**LLAMA_8B, "num_key_value_heads": 32}
    assert isinstance(check("K407", _running(60.0, (4, 32, 8), model=model)), Clear)


def test_clear_when_attention_is_small():
    assert isinstance(check("K407", running(WEIGHTS, _attention(0.2, (4, 32, 8)), step_ms=3.3)), Clear)


def test_cannot_tell_without_grids_a_floor_a_model_or_a_trace():
    assert isinstance(check("K407", _running(16.0, None)), CannotTell)
    assert isinstance(check("K407", _running(16.0, (4, 32, 8)), gpu=None), CannotTell)
    bare = msgspec.structs.replace(_running(16.0, (4, 32, 8)), model_config=None)
    assert isinstance(check("K407", bare), CannotTell)
    assert isinstance(check("K407", server([Stage(running=8, step_ms=20.0)])), CannotTell)
