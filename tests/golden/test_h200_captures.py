"""What must be said of the real captures: SGLang 0.5.16 on one H200, trimmed (progress bars, histogram buckets)."""

import re
from functools import cache
from importlib import resources
from pathlib import Path

import pytest

from stepline.findings.diagnose import diagnose
from stepline.findings.diagnosis import RunDiagnosis
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Picture, Setup
from stepline.sources.read import read_one_run as read

RECORDED = Path(str(resources.files("stepline.lab").joinpath("recorded")))
TEST_DATA = Path(__file__).parents[1] / "data" / "h200-sglang"
FOLDERS = {
    "cap8": RECORDED / "batch-cap",
    "v4_torch_1m": RECORDED / "founding-case",
    "healthy": TEST_DATA / "healthy",
    "nograph": TEST_DATA / "nograph",
    "v4_torch_8k": TEST_DATA / "v4_torch_8k",
}


@cache
def picture(name: str) -> Picture:
    return assess(read([FOLDERS[name]]), Setup(gpu="h200"))


@cache
def diagnosis(name: str) -> RunDiagnosis:
    return diagnose(picture(name))


def _codes(name: str) -> list[str]:
    return [finding.code for finding in diagnosis(name).findings]


def test_cap8_names_the_cap_and_not_the_kernels():
    answer = diagnosis("cap8")
    top = answer.findings[0]
    assert (top.code, top.status) == ("S201", "confirmed")
    assert not [code for code in _codes("cap8") if code[0] in "KH"]
    assert answer.load is not None
    assert (answer.load.running, answer.load.concurrency) == (8, 64)
    assert {level.concurrency: level.running.running for level in picture("cap8").levels}[16] == 8
    assert answer.step is not None
    assert answer.step.measured_ms == pytest.approx(5.09, abs=0.01)
    assert answer.phases.worst == "queue"
    text = " ".join(line.text for line in top.evidence)
    assert "8 requests run while 16 and 64 are offered" in text
    assert "the step itself is healthy: 5.09 ms" in text


def test_cap8_gain_is_closed_loop():
    gain = diagnosis("cap8").findings[0].gain
    assert gain is not None
    today = diagnosis("cap8").load.tok_s
    assert 3.8 <= gain.low / today < gain.high / today <= 5.3  # measured on its twin: 6,528 tok/s, 4.46 times
    assert gain.low <= 6528 <= gain.high
    assert "prefill" in gain.binds_next


def test_cap8_gain_is_closed_loop_by_the_log_alone(tmp_path):
    (tmp_path / "server.log").write_bytes((FOLDERS["cap8"] / "server.log").read_bytes())
    answer = diagnose(assess(read([tmp_path]), Setup(gpu="h200", model="llama-3.1-8b")))
    top = answer.findings[0]
    assert (top.code, top.status) == ("S201", "confirmed")
    assert top.gain.low <= 6528 <= top.gain.high
    assert top.gain.tok_s / (top.gain.tok_s - top.recoverable_tok_s) < 5.3


def test_nograph_is_the_missing_graphs_by_the_decode_counter():
    top = diagnosis("nograph").findings[0]
    assert (top.code, top.status) == ("H302", "confirmed")
    assert any("905" in line.text and line.source.startswith("metrics.txt") for line in top.evidence)
    assert top.gain.low <= 6528 <= top.gain.high  # its twin with graphs on
    assert len(_codes("nograph")) == 1


def test_nograph_by_decode_lines_when_there_is_no_counter(tmp_path):
    log = (FOLDERS["nograph"] / "server.log").read_text()
    (tmp_path / "server.log").write_text(log)
    (tmp_path / "gpm.csv").write_bytes((FOLDERS["nograph"] / "gpm.csv").read_bytes())
    answer = diagnose(assess(read([tmp_path]), Setup(gpu="h200", model="llama-3.1-8b")))
    assert answer.findings[0].code == "H302"


def test_healthy_is_healthy():
    answer = diagnosis("healthy")
    assert answer.findings == ()
    law = answer.step.law
    assert answer.step.floor.used == "strict"  # dummy weights
    speed = {p.running: p.step_ms for p in law.points}
    floors = {1: 3.14, 8: 3.20, 32: 3.41, 64: 3.69}
    expected = {1: 0.64, 8: 0.63, 32: 0.60, 64: 0.56}
    assert {n: floors[n] / speed[n] for n in floors} == pytest.approx(expected, abs=0.02)
    assert answer.step.floor.strict_ms == pytest.approx(3.69, rel=0.02)
    life = {line.part: line.share for line in answer.life}
    assert life["prefill, admission and gaps"] == pytest.approx(1 / 3, abs=0.04)


def test_founding_capture_is_suspected_without_a_trace():
    answer = diagnosis("v4_torch_1m")
    top = answer.findings[0]
    assert (top.code, top.status) == ("K401", "suspected")
    assert {rival.rival.split()[0] for rival in top.rivals} == {"K403", "K404"}
    law = answer.step.law
    assert law.fixed_ms == pytest.approx(2.1, rel=0.05)
    assert law.per_request_ms == pytest.approx(0.717, rel=0.05)
    assert law.ceiling_tok_s == pytest.approx(1396, abs=30)
    assert {p.running: p.windows for p in law.points}[1] == 1
    assert answer.step.context == pytest.approx(343, abs=1)
    assert answer.step.floor.used == "strict"


def test_founding_gain_holds_the_step_measured_after_the_fix():
    gain = diagnosis("v4_torch_1m").findings[0].gain
    fixed = next(p for p in diagnosis("v4_torch_8k").step.law.points if p.running == 32)
    assert gain.low <= 1000 * 32 / fixed.step_ms <= gain.high  # both sides by decode windows
    assert "prefill is not in these figures" in gain.binds_next


def test_founding_capture_shows_the_roofline_slope_as_context_only():
    # The expected slope is context: with dummy weights routing collapses and only the strict floor proves anything.
    at = {n: picture("v4_torch_1m").floor_at(n, "expected").total_ms for n in (1, 16)}
    context = (at[16] - at[1]) / 15
    assert 0.717 / context == pytest.approx(4.6, rel=0.05)


def test_founding_twin_is_the_host():
    answer = diagnosis("v4_torch_8k")
    assert answer.step.law.refused is not None
    assert "monotone" in answer.step.law.refused
    assert "K401" not in _codes("v4_torch_8k")
    assert _codes("v4_torch_8k")[:1] in ([], ["H301"])


@pytest.mark.parametrize(
    ("name", "concurrency"),
    [("cap8", 16), ("healthy", 32), ("nograph", 32), ("v4_torch_1m", 16), ("v4_torch_8k", 16)],
)
def test_the_level_that_the_profiler_froze_is_left_out(name, concurrency):
    disturbed = {level.concurrency: level.disturbed for level in picture(name).levels}
    assert "profiler" in disturbed[concurrency]


def test_a_rate_of_zero_is_missing():
    assert [level.tok_s for level in picture("v4_torch_1m").levels] == [None, None, None]


@pytest.mark.parametrize("name", FOLDERS)
def test_client_rates_are_never_read_as_steps(name):
    assert diagnosis(name).step.instrument == "decode windows (log)"


@pytest.mark.parametrize("name", FOLDERS)
def test_every_number_of_evidence_can_be_found_again(name):
    for finding in diagnosis(name).findings:
        for line in finding.evidence:
            if line.source and (place := re.fullmatch(r"(\S+):(\d+)", line.source)):
                lines = (FOLDERS[name] / place[1]).read_text().splitlines()
                assert int(place[2]) <= len(lines)
