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


def test_a_batch_is_whole_or_a_mean_to_one_decimal():
    assert [units.batch(value) for value in (8, 58.5045, 47.99, 2048.0)] == ["8", "58.5", "48", "2,048"]
