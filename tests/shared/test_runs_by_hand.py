"""Runs of the field's files against a count by hand, and what is said of a few of them."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

import stepline
from stepline.sources.read import read

BY_HAND: dict[str, dict[str, Any]] = tomllib.loads(
    (Path(__file__).parents[2] / "benchmarks" / "runs_by_hand.toml").read_text()
)
NOT_YET = {
    "f09-kimi-sglang-results": "a launch command in a file of its own is a run beside the results",
    "f27-gb10-spec-vllm": "GPU samples without a time join no run",
    "f29-gb10-gemma-vllm": "GPU samples without a time join no run",
    "f43-guidellm-and-inference-perf": "results of two clients are two runs",
    "f45-training-not-serving": "a summary of training steps is read as load levels",
}

pytestmark = pytest.mark.shared


@pytest.mark.parametrize("name", BY_HAND)
def test_runs_are_those_counted_by_hand(shared: Path, name: str, request: pytest.FixtureRequest) -> None:
    if name in NOT_YET:
        request.applymarker(pytest.mark.xfail(reason=NOT_YET[name], strict=True))
    counted = BY_HAND[name].get("readable", BY_HAND[name]["runs"])
    assert len(read([shared / "field" / "files" / name]).runs) == counted


def test_every_folder_was_counted(shared: Path) -> None:
    assert set(BY_HAND) == {path.name for path in (shared / "field" / "files").iterdir() if path.is_dir()}


def test_tp8_is_slower_than_tp2_at_64(shared: Path) -> None:
    told = stepline.diagnose(shared / "field" / "files" / "f03-gptoss-h200-vllm-tp2-4-8")
    (one,) = [c for c in told.comparisons if (c.value_before, c.value_after) == ("2", "8")]
    assert one.setting == "tensor_parallel_size"
    assert one.effect.at == "C = 64"
    assert (round(one.effect.before), round(one.effect.after)) == (4194, 3021)
    assert one.effect.speedup == pytest.approx(0.72, abs=0.005)
    assert one.effect.interval.high < 0.8
    assert len(told.runs) == 9


def test_the_campaign_is_eight_runs(shared: Path) -> None:
    told = stepline.diagnose(shared / "founding" / "camp")
    assert len(told.runs) == 8
    said = {one.setting: one for one in told.comparisons}
    assert {"environment", "speculation", "ep_size", "moe_runner_backend", "context_length"} <= set(said)
    assert [cause.code for cause in said["context_length"].answers] == ["K401"]
    assert [cause.says for cause in said["environment"].answers] == ["ruled out"]


@pytest.mark.parametrize("name", ["cold-start-other-workload", "opening-burst-as-cold-start"])
def test_no_cold_start_is_seen_where_none_is(shared: Path, name: str) -> None:
    told = stepline.diagnose(shared / "field" / "small" / name)
    assert not any(finding.code == "L104" for run in told.runs for finding in run.findings)


def test_subfolders_are_runs_with_their_own_result(shared: Path) -> None:
    told = stepline.diagnose(shared / "field" / "small" / "runs-in-subfolders")
    rates = sorted(run.load.tok_s or 0.0 for run in told.runs if run.load is not None)
    assert rates == pytest.approx([518.6, 1854.9], abs=0.1)
