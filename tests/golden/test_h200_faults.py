"""Planted faults and their healthy twins on one H200 (SGLang 0.5.16), each with the truth beside it.

The labels rest on a physical check and, mostly, on the twin (`truth.toml`). Several thresholds were set with these
captures at hand, so they guard against regressions; they are no measure of accuracy on servers nobody has seen.
"""

import tomllib
from functools import cache
from pathlib import Path

import pytest

from stepline.findings.diagnose import diagnose
from stepline.findings.diagnosis import RunDiagnosis
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Setup
from stepline.sources.read import read_one_run as read

FOLDER = Path(__file__).parents[1] / "data" / "h200-sglang-2"
NAMES = sorted(path.name for path in FOLDER.iterdir())
EVIDENCE = ("server.log", "server_info.json", "metrics.txt", "gpm.csv", "sweep.json", "config.json")


@cache
def diagnosed(name: str) -> RunDiagnosis:
    return diagnose(assess(read([FOLDER / name / file for file in EVIDENCE]), Setup(gpu="h200")))


def truth(name: str) -> dict:
    return tomllib.loads((FOLDER / name / "truth.toml").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_the_planted_cause_comes_first_and_sound_servers_are_left_alone(name):
    codes = [finding.code for finding in diagnosed(name).findings]
    expected = truth(name)["expected"]
    if expected:
        assert codes[:1] == [expected]
    else:
        assert codes == []


@pytest.mark.parametrize("name", NAMES)
def test_nothing_forbidden_is_claimed(name):
    codes = {finding.code for finding in diagnosed(name).findings}
    assert codes & set(truth(name)["forbidden"]) == set()


TWINS = {"kv_small": ("healthy_8b", 48), "graph_cap8": ("healthy_8b", 48), "overlap_off": ("healthy_8b", 16)}


@pytest.mark.parametrize("name", TWINS)
def test_the_predicted_rate_holds_the_twins_measured_one(name):
    twin, concurrency = TWINS[name]
    levels = read([FOLDER / twin / "sweep.json"]).levels
    measured = next(level.tok_s for level in levels if level.concurrency == concurrency)
    gain = diagnosed(name).findings[0].gain
    assert gain.low <= measured <= gain.high


def test_the_pool_binds_next_where_it_is_smaller_than_the_load():
    # This server's pool holds 21 such requests (its twin's holds 48), so raising the cap alone gains little.
    top = diagnosed("moe_cap16").findings[0]
    assert top.status == "confirmed"
    assert "the KV pool, which holds 21" in top.gain.binds_next
