"""Numbers that contradict each other by arithmetic."""

import pytest

from stepline.sources.quantities.checks import fits, misfits

SOUND = {
    "tok_s": 800.0,
    "tpot": 0.019,
    "streams": 16.0,
    "requests_s": 6.25,
    "e2e": 2.5,
    "ttft": 0.08,
    "output": 128.0,
    "requests": 320.0,
    "duration": 51.2,
}


def test_a_sound_point_breaks_no_law() -> None:
    assert misfits(SOUND) == []


@pytest.mark.parametrize(
    ("change", "dropped"),
    [
        ({"tpot": 19.0}, "tpot"),
        ({"tok_s": 8000.0}, "tok_s"),
        ({"ttft": 80.0}, "ttft"),
    ],
)
def test_the_number_that_others_do_not_confirm_is_dropped(change: dict[str, float], dropped: str) -> None:
    broken = misfits({**SOUND, **change})
    assert broken
    assert all(dropped in misfit.drop for misfit in broken)
    assert set.union(*(set(misfit.drop) for misfit in broken)) <= {dropped}


def test_of_two_that_nothing_confirms_neither_is_used() -> None:
    (misfit,) = misfits({"tok_s": 800.0, "tpot": 19.0, "streams": 16.0})
    assert misfit.drop == {"tok_s", "tpot", "streams"}
    assert "950 times" in misfit.text


def test_a_unit_is_told_by_the_laws_or_not_at_all() -> None:
    point = {"tok_s": 800.0, "tpot": 19.0, "streams": 16.0}
    assert fits(point, 1.0) is False
    assert fits(point, 1e-3) is True
    assert fits({"tok_s": 800.0, "streams": 16.0}, 1.0) is None
