"""A changed setting is looked up in every engine's catalogue; which way it went decides what its effect shows."""

import pytest

from stepline.facts.settings.move import move_of

WORTH, NONE = 0.1, 0.03


@pytest.mark.parametrize(
    ("name", "slow", "fast", "code"),
    [
        ("max_num_seqs", "16", "64", "S201"),
        ("--max-running-requests", "16", "64", "S201"),
        ("config", "--max-num-seqs 16", "--max-num-seqs=64", "S201"),
        ("config", "--enforce-eager", "baseline", "H302"),
        ("disable_overlap_schedule", "True", "False", "H301"),
        ("cpu_offload_gb", "4", "0", "H307"),
        ("spec_tokens", "2", "0", "S205"),
        ("max_model_len", "1048576", "131072", "K401"),
    ],
)
def test_a_gain_confirms_and_the_same_values_the_other_way_round_rule_out(
    name: str, slow: str, fast: str, code: str
) -> None:
    for before, after, speedup in ((slow, fast, 1.5), (fast, slow, 1 / 1.5)):
        move = move_of(name, before, after)
        assert move is not None
        assert move.bound(speedup, WORTH) == (code,)
        assert code not in move.bound(1 / speedup, WORTH)
        assert code in move.did_not_bind(1 / speedup, NONE)
        assert move.bound(1.05, WORTH) == ()


def test_several_settings_at_once_are_of_none() -> None:
    move = move_of("config", "baseline", "--max-num-seqs 16 --enforce-eager")
    assert move is not None
    assert move.causes == ()
    assert "several" in move.acts_on


def test_of_two_choices_the_slower_has_the_cause() -> None:
    move = move_of("NCCL_ALGO", "Ring", "Tree")
    assert move is not None
    assert move.bound(1.5, WORTH) == move.bound(1 / 1.5, WORTH) == ("C501",)


def test_a_choice_that_may_take_away_several_causes_proves_none_of_them() -> None:
    move = move_of("attention_backend", "triton", "flashinfer")
    assert move is not None
    assert len(move.bound(1.5, WORTH)) > 1
    assert move_of("moe_runner_backend", "marlin", "flashinfer_cutlass").did_not_bind(1.0, NONE) == ()  # type: ignore[union-attr]


def test_what_is_faster_on_any_server_shows_no_fault() -> None:
    move = move_of("kv_cache_dtype", "auto", "fp8_e4m3")
    assert move is None or "K405" not in move.causes


def test_an_unknown_name_is_unknown() -> None:
    assert move_of("string_cache", "on", "off") is None
