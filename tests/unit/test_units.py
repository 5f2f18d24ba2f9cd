import pytest

from stepline import units


@pytest.mark.parametrize(
    ("value", "text"),
    [(5.0912, "5.09 ms"), (0.0431, "43.1 µs"), (4945.0, "4.95 s"), (0, "0 ms")],
)
def test_ms(value, text):
    assert units.ms(value) == text


def test_missing_number_is_not_zero():
    assert units.fmt(float("nan")) == "?"


def test_sizes_are_decimal():
    assert units.size(159.6e9) == "160 GB"
