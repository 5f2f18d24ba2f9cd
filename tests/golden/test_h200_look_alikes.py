"""What real servers with other faults, or none, look like to rules that have few captures of their own.

Recordings of H200s (SGLang 0.5.16): front ends that keep up, a power cap that costs nothing, long prompts
beside short answers, a tensor pipe that decode leaves idle, queues behind caps and pools.
"""

from functools import cache
from pathlib import Path

import msgspec
import pytest

from stepline.findings.diagnose import diagnose
from stepline.model.measure.idle_engine import idle_use
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Picture, Setup
from stepline.model.signs.front_end import both_sides
from stepline.model.signs.sm_clocks import clocks
from stepline.sources.read import read_one_run as read

DATA = Path(__file__).parents[1] / "data"
CAPTURES = sorted(path for group in ("h200-live", "h200-sglang-2") for path in (DATA / group).iterdir())
QUIET = ("L103", "S206", "H304", "H305", "H306", "K406", "C504", "P601", "P602")


@cache
def picture(capture: Path) -> Picture:
    files = [
        path for path in sorted(capture.iterdir()) if path.name != "truth.toml" and "trace" not in path.name
    ]
    return assess(read(files), Setup(gpu="h200"))


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.name)
def test_none_of_these_causes_is_named(capture):
    said = diagnose(picture(capture))
    assert [finding.code for finding in said.findings if finding.code in QUIET] == []
    assert [note.text for note in said.notes if note.text[:4] in QUIET] == []


def test_a_sound_front_end_s_two_sides_agree():
    sides = [side for capture in CAPTURES for side in both_sides(picture(capture))]
    assert len(sides) >= 60
    assert max(side.late for side in sides if side.late is not None) < 1.1
    logged = [side for side in sides if side.engine_ms is not None]
    assert max(side.missing_share for side in logged) < 0.06


def test_gauges_alone_miss_few_requests():
    runs = [msgspec.structs.replace(picture(capture).run, decodes=()) for capture in CAPTURES]
    sides = [side for run in runs for side in both_sides(assess(run, Setup(gpu="h200")))]
    assert len(sides) >= 20
    assert max(side.missing_share for side in sides) < 0.13


def test_the_power_cap_shows_and_the_clock_stays_near_the_full_one():
    seen = [one for capture in CAPTURES if (one := clocks(picture(capture))) is not None]
    assert len(seen) >= 20
    assert min(one.share for one in seen) > 0.89
    assert max(one.power_limit_share for one in seen) == pytest.approx(0.8)
    assert {one.held_back_share for one in seen} == {0.0}


def test_the_gpu_rests_while_the_engine_has_no_request():
    uses = [use for capture in CAPTURES if (use := idle_use(picture(capture).run)) is not None]
    assert len(uses) >= 8
    assert max(use.busy for use in uses) < 0.001
