"""Cells: numbers as people write them, and what is no number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.sources.quantities.cells import cell, decimal_commas


@pytest.mark.parametrize(
    ("text", "value", "low", "high", "unit"),
    [
        ("~14", 14, 14, 14, None),
        ("71 ms", 71, 71, 71, "ms"),
        ("1,204.5", 1204.5, 1204.5, 1204.5, None),
        ("92.4 %", 92.4, 92.4, 92.4, "percent"),
        ("14-16", 15, 14, 16, None),
        ("14 – 16 ms", 15, 14, 16, "ms"),
        ("132.19 ± 0.55", 132.19, 131.64, 132.74, None),
        ("1.2k", 1200, 1200, 1200, None),
        ("**41.2**", 41.2, 41.2, 41.2, None),
        ("0.5s", 0.5, 0.5, 0.5, "s"),
        (">97", 97, 97, 97, None),
        ("-3", -3, -3, -3, None),
    ],
)
def test_a_number(text: str, value: float, low: float, high: float, unit: str | None) -> None:
    found = cell(text)
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((value, low, high))
    assert found.unit == unit


@pytest.mark.parametrize(
    "text", ["", "n/a", "-", "OOM", "12:30", "2024-05-01", "3.4.5", "p99", "10/12", "2,5", "nan", "inf"]
)
def test_no_number(text: str) -> None:
    assert cell(text) is None


def test_commas_are_decimal_signs_only_where_they_can_be_nothing_else() -> None:
    assert decimal_commas(["27,5", "1.204", "x"])
    assert not decimal_commas(["1,204", "2,048"])
    assert not decimal_commas(["27,5", "3.2"])
    found = cell("1.204,5", decimal_comma=True)
    assert found is not None
    assert found.value == 1204.5


@given(st.one_of(st.text(max_size=40), st.floats(), st.integers(), st.booleans(), st.none()))
def test_no_cell_raises(raw: object) -> None:
    found = cell(raw)
    assert found is None or found.low <= found.high
