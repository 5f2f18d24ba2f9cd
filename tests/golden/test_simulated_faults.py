"""Simulated captures through the project's own readers and rules: no damage, the planted cause, healthy ones spared.

The simulation has its own formula for every step, so these are no echo; but they are simulated, and prove less than
a real capture does.
"""

import tomllib
from pathlib import Path

import pytest

import stepline
from stepline.evidence.run import Run
from stepline.findings.diagnosis import RunDiagnosis
from stepline.lab.sim.captures.capture import write_capture
from stepline.lab.sim.captures.cases import Case, cases
from stepline.lab.sim.faults import FAULTS
from stepline.tasks.diagnose import diagnose
from stepline.tasks.setup import SetupRequest
from tests.schemas import follow_schema

SEED = 20260101
FOUND = {
    "sglang": (
        "S201",
        "S202",
        "S204",
        "H301",
        "H302",
        "H303",
        "H304",
        "K401",
        "K402",
        "K403",
        "K404",
        "K405",
        "C501",
        "C502",
        "L102",
        "L104",
    ),
    "vllm": (
        "S201",
        "S202",
        "H301",
        "H304",
        "L104",
        "K401",
        "K402",
        "K403",
        "K405",
        "C501",
        "C502",
        "L105",
        "P601",
    ),
}
"""Named first at strength 3 on each engine; what is missing here is not found there yet."""
SPARED = (
    "healthy",
    "warning-lines",
    "power-cap",
    "graphs-off-harmless",
    "low-prefix-hit",
    "drafts-paying",
    "long-prompts",
)


def case(engine: str, fault: str, strength: int) -> Case:
    return next(
        each for each in cases(SEED, engines=(engine,)) if each.name == f"{engine}-{fault}-{strength}-0"
    )


def diagnosed(one: Case, out: Path) -> tuple[Run, RunDiagnosis]:
    write_capture(one, out)
    label = tomllib.loads((out / one.name / "case.toml").read_text())
    files = [str(out / one.name / name) for name in label["data"]["files"]]
    whole = diagnose(files, SetupRequest(gpu=one.gpu, tp=one.tp))
    follow_schema(whole)
    return stepline.read(files).runs[0], whole.chosen


@pytest.mark.parametrize(
    ("engine", "fault"), [(engine, fault) for engine, faults in FOUND.items() for fault in faults]
)
def test_a_strong_fault_is_named_first(engine: str, fault: str, tmp_path: Path) -> None:
    one = case(engine, fault, 3)
    run, told = diagnosed(one, tmp_path)
    truth = tomllib.loads((tmp_path / one.name / "truth.toml").read_text())
    assert truth["expected"] == fault
    assert not run.doubts
    assert all(file.damaged == 0 and file.kind for file in run.files)
    assert told.findings[0].code == fault, [finding.code for finding in told.findings]


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
@pytest.mark.parametrize("name", SPARED)
def test_a_healthy_server_is_not_called_sick(engine: str, name: str, tmp_path: Path) -> None:
    run, told = diagnosed(case(engine, name, 1), tmp_path)
    assert not run.doubts
    assert not [finding.code for finding in told.findings if finding.status == "confirmed"]


def test_a_fault_that_costs_nothing_is_not_expected(tmp_path: Path) -> None:
    weak = [each for each in cases(SEED, engines=("sglang",)) if each.fault == "H301" and each.strength == 1]
    truth = write_capture(weak[0], tmp_path)
    costs = truth.tok_s < 0.9 * truth.twin_tok_s
    assert bool(truth.expected) == costs


REST = [fault for fault in FAULTS if fault.name not in {*FOUND["sglang"], *SPARED}]


@pytest.mark.parametrize("fault", REST, ids=lambda fault: fault.name)
def test_what_is_not_found_yet_is_still_answered_in_full(fault, tmp_path: Path) -> None:
    """With the tests above, every kind of fault is told as its schema says."""
    run, told = diagnosed(case("sglang", fault.name, fault.strengths[-1]), tmp_path)
    assert not run.doubts
    assert told.conclusive
