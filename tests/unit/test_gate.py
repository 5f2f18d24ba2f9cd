"""The script behind action.yml: exit codes to a gate, outputs, summary; and that the page names every input."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.test_compare import log

ROOT = Path(__file__).parents[2]


def gate(folder: Path, **settings: str) -> tuple[int, dict[str, str], str]:
    outputs, summary = folder / "outputs", folder / "summary"
    outputs.touch()
    summary.touch()
    environment = {
        **{name: value for name, value in os.environ.items() if name not in ("BEFORE", "AFTER", "DIAGNOSE")},
        "GITHUB_OUTPUT": str(outputs),
        "GITHUB_STEP_SUMMARY": str(summary),
        "RUNNER_TEMP": str(folder),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        **settings,
    }
    done = subprocess.run(
        [ROOT / "scripts" / "gate"], env=environment, check=False, capture_output=True, text=True
    )
    told = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
    return done.returncode, told, summary.read_text()


@pytest.fixture
def runs(tmp_path):
    return {
        name: log(tmp_path / name, step, noise=noise, seed=seed)
        for name, step, noise, seed in (
            ("slow", 10.0, 0.002, 1),
            ("fast", 8.0, 0.002, 2),
            ("noisy", 10.0, 0.04, 3),
            ("noisier", 10.1, 0.04, 4),
        )
    }


@pytest.mark.parametrize(
    ("sides", "code", "verdict"),
    [
        (("slow", "fast"), 0, "better"),
        (("fast", "slow"), 1, "worse"),
        (("noisy", "noisier"), 0, "inconclusive"),
    ],
)
def test_a_comparison_gates(tmp_path, runs, sides, code, verdict):
    before, after = (runs[side] for side in sides)
    returned, told, summary = gate(tmp_path, BEFORE=before, AFTER=f"{after}\n")
    assert (returned, told["verdict"]) == (code, verdict)
    assert json.loads(Path(told["json"]).read_text())["verdict"] == verdict
    assert summary == Path(told["markdown"]).read_text()


def test_inconclusive_can_fail(tmp_path, runs):
    returned, told, _ = gate(tmp_path, BEFORE=runs["noisy"], AFTER=runs["noisier"], INCONCLUSIVE="fail")
    assert (returned, told["verdict"]) == (3, "inconclusive")


def test_a_refusal_fails_and_leaves_no_report(tmp_path, runs):
    other = log(tmp_path / "other", 10.0, running=64)
    returned, told, summary = gate(tmp_path, BEFORE=runs["slow"], AFTER=other)
    assert (returned, told, summary) == (2, {"verdict": "refused"}, "")


def test_a_diagnosis_gates_on_a_cause(tmp_path):
    fault = str(ROOT / "tests" / "data" / "h200-sglang-2" / "moe_cap16")
    returned, told, summary = gate(tmp_path, DIAGNOSE=fault, GPU="h200", FAIL_ON="S201")
    assert (returned, told["verdict"]) == (1, "found")
    assert "S201 batch-capped" in summary
    assert gate(tmp_path, DIAGNOSE=fault, GPU="h200", FAIL_ON="H302")[0] == 0


def test_paths_are_never_part_of_a_script(tmp_path, runs):
    returned, _, _ = gate(tmp_path, BEFORE=f"$(touch {tmp_path}/owned)", AFTER=runs["fast"])
    assert returned == 2
    assert not (tmp_path / "owned").exists()
    script = (ROOT / "action.yml").read_text()
    assert [line for line in re.findall(r"run: (.*)", script) if "${{" in line] == []


def test_nothing_to_judge_is_refused(tmp_path, runs):
    assert gate(tmp_path)[0] == 2
    assert gate(tmp_path, BEFORE=runs["slow"])[0] == 2


def test_the_page_names_every_input_and_output():
    page, action = (ROOT / "docs" / "ci.md").read_text(), (ROOT / "action.yml").read_text()
    declared = re.findall(r"^  ([a-z-]+):$", action.split("\nruns:")[0], re.MULTILINE)
    assert {"before", "inconclusive", "markdown"} <= set(declared)
    assert [name for name in declared if f"`{name}`" not in page] == []
