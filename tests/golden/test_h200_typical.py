"""The typical step of dense models on the H200: a sum of kernels that were measured alone, against servers."""

from pathlib import Path

import pytest

from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Picture, Setup
from stepline.sources.read import read_one_run as read

DATA = Path(__file__).parents[1] / "data"


def picture(name: str) -> Picture:
    return assess(read([DATA / name]), Setup(gpu="h200"))


def over_typical(name: str) -> float:
    seen = picture(name)
    assert seen.step is not None
    assert seen.floors is not None
    assert seen.floors.typical is not None
    assert "kernels as measured" in seen.floors.typical.source
    return seen.step.measured_ms / seen.floors.typical.ms


@pytest.mark.parametrize(
    "name",
    [
        "h200-sglang/healthy",
        "h200-live/healthy",
        "h200-live/healthy32",
        "h200-live/cap8",
        "h200-live/tp2",
        "h200-sglang-2/dense_graph",
        "h200-sglang-2/healthy_long_out",
    ],
)
def test_a_server_whose_steps_are_healthy_is_typical(name: str) -> None:
    assert over_typical(name) == pytest.approx(1, abs=0.10)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("h200-live/graph8", 2.5),
        ("h200-live/nograph", 2.5),
        ("h200-live/kvsplit1", 6),
        ("h200-live/tp2_nop2p", 4),
        ("h200-sglang-2/kv_splits8_24k", 1.3),
        ("h200-sglang-2/overlap_off", 1.15),
    ],
)
def test_a_server_with_a_fault_in_its_steps_is_not(name: str, least: float) -> None:
    assert over_typical(name) > least


def test_experts_keep_the_line_fitted_to_public_rows() -> None:
    seen = picture("h200-sglang-2/moe_healthy")
    assert seen.floors is not None
    assert seen.floors.typical is not None
    assert "public rows" in seen.floors.typical.source
    assert "grouped products of experts" in seen.floors.typical.source
