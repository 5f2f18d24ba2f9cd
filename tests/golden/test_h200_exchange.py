"""Planted faults in decode steps of a plain PyTorch model on two H200s, each beside its sound twin."""

from functools import cache
from pathlib import Path

import msgspec
import pytest

from stepline.findings.diagnose import diagnose
from stepline.findings.diagnosis import RunDiagnosis
from stepline.findings.outcome import Clear, Fired
from stepline.findings.registry import find_rule
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Picture, Setup
from stepline.sources.read import read_one_run as read
from stepline.sources.read import trace_files
from stepline.tasks.traces import TraceRequest, summarise

FOLDER = Path(__file__).parents[1] / "data" / "h200-torch"
TRUTH = {
    "allreduce_one_shot": None,
    "allreduce_nccl": None,
    "allreduce_without_p2p": ("C501", "confirmed"),
    "allreduce_over_sockets": ("C501", "confirmed"),
    "rank_on_a_shared_gpu": ("C502", "confirmed"),
    "rank_with_more_work": ("C502", "confirmed"),
    "weights_bf16": None,
    "weights_fp32": ("K405", "confirmed"),
    "attention_fused": None,
    "attention_unfused": ("K404", "confirmed"),
    "attention_unfused_graph": ("K404", "suspected"),
}
TWINS = {
    "allreduce_over_sockets": "allreduce_nccl",
    "rank_on_a_shared_gpu": "allreduce_nccl",
    "rank_with_more_work": "allreduce_nccl",
    "weights_fp32": "weights_bf16",
    "attention_unfused": "attention_fused",
}


@cache
def picture(name: str, ranks: int = 2) -> Picture:
    files = [path for path in sorted((FOLDER / name).iterdir()) if f"TP-{ranks}" not in path.name]
    trace = summarise(TraceRequest(paths=tuple((path for path, _ in trace_files(files)))))
    size = len(list((FOLDER / name).glob("*.trace.json.gz")))
    return assess(msgspec.structs.replace(read(files), trace=trace), Setup(gpu="h200", tp=size))


def diagnosed(name: str, ranks: int = 2) -> RunDiagnosis:
    return diagnose(picture(name, ranks))


@pytest.mark.parametrize("name", TRUTH)
def test_the_planted_cause_alone_is_found_and_sound_steps_are_left_alone(name):
    found = [(finding.code, finding.status) for finding in diagnosed(name).findings]
    assert found == ([TRUTH[name]] if TRUTH[name] else [])


@pytest.mark.parametrize("name", TWINS)
def test_the_predicted_rate_holds_the_twins_measured_one(name):
    gain = diagnosed(name).findings[0].gain
    assert gain.low <= picture(TWINS[name]).rate_tok_s <= gain.high


@pytest.mark.parametrize("name", ["allreduce_over_sockets", "rank_on_a_shared_gpu", "rank_with_more_work"])
def test_one_rank_cannot_tell_waiting_from_moving(name):
    (finding,) = diagnosed(name, ranks=1).findings
    assert (finding.code, finding.status) == ("C501", "suspected")
    assert any("C502" in rival.rival for rival in finding.rivals)


def test_the_late_rank_and_its_reason_are_named():
    assert "rank 1" in diagnosed("rank_on_a_shared_gpu").findings[0].headline
    assert "same work more slowly" in diagnosed("rank_on_a_shared_gpu").findings[0].headline
    assert "more work" in diagnosed("rank_with_more_work").findings[0].headline


@pytest.mark.parametrize("name", TRUTH)
def test_the_traces_are_sound(name):
    assert isinstance(find_rule("L105").check(picture(name)), Clear)


@pytest.mark.shared
def test_a_trace_of_prefill_alone_proves_nothing_about_decode(shared):
    path = shared / "data/public-traces/tracelens/sglang_prefilldecode"
    run = msgspec.structs.replace(
        read([path]), trace=summarise(TraceRequest(paths=tuple((path for path, _ in trace_files([path])))))
    )
    answer = find_rule("L105").check(assess(run, Setup()))
    assert isinstance(answer, Fired)
    assert answer.status == "confirmed"


@pytest.mark.shared
@pytest.mark.parametrize("name", ["healthy", "cap8", "nograph", "v4_torch_1m", "v4_torch_8k"])
def test_engine_captures_with_traces_show_none_of_these_causes(shared, name):
    path = shared / "data/h200-sglang" / name
    run = read([path])
    trace = summarise(
        TraceRequest(
            paths=tuple((path for path, _ in trace_files([path]))),
            context_length=run.server.context_length.value,
        )
    )
    found = assess(msgspec.structs.replace(run, trace=trace), Setup(gpu="h200"))
    for code in ("L105", "K404", "K405", "K407", "C501", "C502"):
        assert isinstance(find_rule(code).check(found), Clear), code
