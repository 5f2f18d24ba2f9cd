import pytest

from stepline.facts.number_types import number_type


@pytest.mark.parametrize(
    ("spelled", "known"),
    [
        ("float8_e4m3fn", "fp8"),
        ("torch.float8_e5m2", "fp8"),
        ("fp8_e4m3", "fp8"),
        ("FP8", "fp8"),
        ("fp8-ds-mla", "fp8"),
        ("bfloat16", "bf16"),
        ("half", "bf16"),
        ("nvfp4", "fp4"),
        ("fp4_e2m1", "fp4"),
        ("int8", "int8"),
        ("auto", "auto"),
        ("model", "auto"),
    ],
)
def test_a_type_is_known_by_every_spelling(spelled: str, known: str) -> None:
    assert number_type(spelled) == known


@pytest.mark.parametrize("spelled", ["float7_e3m3", "fp3", "fp", "x" * 1000])
def test_any_other_word_is_no_type(spelled: str) -> None:
    assert number_type(spelled) is None
