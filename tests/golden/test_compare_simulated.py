"""Simulated servers of one kind that differ by their seed alone, as starts of one server do."""

import json
from pathlib import Path

import msgspec
import pytest

from stepline.cli.main import main
from stepline.lab.sim.captures.capture import write_capture
from stepline.lab.sim.captures.cases import cases

SEEDS = (1000, 1001, 1004)
"""Two servers within a percent of each other, and one almost two percent apart from both."""


@pytest.fixture(scope="module")
def servers(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("servers")
    for engine in ("sglang", "vllm"):
        healthy = next(case for case in cases(20260101, engines=(engine,)) if case.fault == "healthy")
        for seed in SEEDS:
            write_capture(msgspec.structs.replace(healthy, seed=seed, name=f"{engine}-{seed}"), out)
        capped = msgspec.structs.replace(
            healthy, seed=SEEDS[1], name=f"{engine}-capped", fault="S201", strength=3
        )
        write_capture(capped, out)
    return out


def compared(servers: Path, before: str, after: str, tmp_path: Path) -> dict:
    answer = tmp_path / "answer.json"
    sides = [str(servers / before), str(servers / after)]
    code = main(["compare", *sides, "--gpu", "h200", "--json", str(answer), "--quiet"])
    told = json.loads(answer.read_text())
    assert code == {"better": 0, "same": 0, "worse": 1, "inconclusive": 3}[told["verdict"]]
    return told


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_two_healthy_servers_are_the_same(engine, servers, tmp_path):
    told = compared(servers, f"{engine}-{SEEDS[0]}", f"{engine}-{SEEDS[1]}", tmp_path)
    assert told["verdict"] == "same"
    assert len(told["lines"]) >= 7
    assert max(line["interval"]["high"] for line in told["lines"]) < 1.03


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_single_runs_too_far_apart_for_the_same_are_inconclusive_with_the_runs_needed(
    engine, servers, tmp_path
):
    told = compared(servers, f"{engine}-{SEEDS[0]}", f"{engine}-{SEEDS[2]}", tmp_path)
    assert told["verdict"] == "inconclusive"
    assert told["more_runs"] == 2


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_a_planted_cap_is_worse_and_named(engine, servers, tmp_path):
    told = compared(servers, f"{engine}-{SEEDS[0]}", f"{engine}-capped", tmp_path)
    assert told["verdict"] == "worse"
    assert "S201" in told["appeared"]
