"""The founding case, row by row: feed only what was known then, and get what could be said then."""

import json

import pytest

from stepline.findings.diagnose import diagnose
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Setup
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.tensor_activity import tensor_activity
from stepline.sources.read import read_one_run as read

STEPS = {1: 71.0, 8: 286.0, 16: 533.0}


def _line(running: int, step_ms: float, second: int) -> str:
    rate = 1000 * running / step_ms
    return (
        f"[2026-05-02 10:00:{second:02d} TP0] Decode batch, #running-req: {running}, #token: {running * 8192}, "
        f"token usage: 0.02, cuda graph: True, gen throughput (token/s): {rate:.4f}, #queue-req: 0"
    )


def _log(folder, steps=STEPS):
    lines = [
        _line(running, step, 2 * index + pair)
        for index, (running, step) in enumerate(steps.items())
        for pair in (0, 1)
    ]
    (folder / "server.log").write_text("\n".join(lines) + "\n")


def _diagnosed(folder, **setup):
    picture = assess(read([folder]), Setup(**setup))
    return picture, diagnose(picture)


def test_row_1_the_batch_is_what_the_engine_says(tmp_path):
    (tmp_path / "server.log").write_text("[2026-05-02 10:00:00 TP0] Decode batch, #running-req: 8\n")
    (tmp_path / "client.json").write_text(json.dumps([{"concurrency": 16, "tok_s": 28}]))
    _, answer = _diagnosed(tmp_path)
    assert answer.step.running == 8
    assert answer.step.measured_ms == pytest.approx(286, rel=0.02)
    gap = {item.code: item for item in answer.cannot_tell}["S201"]
    assert "queue" in gap.needs
    assert "cap" in gap.needs
    assert gap.command


def test_row_2_the_step_law(tmp_path):
    _log(tmp_path)
    picture, answer = _diagnosed(tmp_path)
    law = answer.step.law
    assert law.fixed_ms == pytest.approx(40, rel=0.02)
    assert law.per_request_ms == pytest.approx(31, rel=0.02)
    assert law.interval is not None
    assert law.interval.low < law.per_request_ms < law.interval.high
    assert law.ceiling_tok_s == pytest.approx(32.3, rel=0.02)
    assert 1000 * 64 / picture.law.step_ms(64) == pytest.approx(31.6, rel=0.02)
    top = answer.findings[0]
    ruled_out = " ".join(f"{ruled.rival}: {ruled.by}" for ruled in top.ruled_out)
    assert top.code == "K403"
    assert top.status == "suspected"
    assert "weight reads" in ruled_out
    assert "host" in ruled_out


def test_row_3_the_gap_to_the_floor(tmp_path):
    _log(tmp_path)
    setup = {"model": "deepseek-ai/DeepSeek-V4-Flash", "gpu": "rtx-pro-6000", "tp": 4}
    picture, answer = _diagnosed(tmp_path, **setup)
    assert answer.step.context == pytest.approx(8192)
    assert 20 < answer.step.gap < 140
    for running, step in STEPS.items():
        floor = picture.floor_at(running, "expected").total_ms
        assert 20 < step / floor < 140
    assert picture.law.per_request_ms > 20 * answer.step.law.expected_per_request_ms
    assert {part.component for part in answer.accounting} > {"kv read"}


def test_row_4_levers_already_tried(tmp_path):
    _log(tmp_path)
    (tmp_path / "levers.csv").write_text(
        "lever,running,before_tok_s,after_tok_s\n"
        "MoE runner marlin,16,30.0,30.0\n"
        "MoE runner cutlass,16,30.0,30.0\n"
        "MTP,1,14.1,20.7\n"
        "MTP,16,30.0,30.0\n"
        "FP8 GEMM tuning,1,14.1,14.9\n"
        "FP8 GEMM tuning,16,30.0,30.0\n"
        "NCCL algorithm,16,30.0,30.1\n"
    )
    _, answer = _diagnosed(tmp_path)
    ruled_out = {ruled.rival: ruled.by for ruled in answer.findings[0].ruled_out}
    for part in ("MoE", "GEMM", "communication", "fixed cost"):
        reason = next(by for rival, by in ruled_out.items() if part in rival)
        assert "+0 %" in reason
        assert "levers.csv" in reason


def test_row_5_a_low_tensor_pipe_proves_nothing(tmp_path):
    _log(tmp_path)
    (tmp_path / "gpu.csv").write_text("any_tensor_util\n0.9\n0.8\n")
    setup = {"model": "deepseek-ai/DeepSeek-V4-Flash", "gpu": "rtx-pro-6000", "tp": 4}
    picture, answer = _diagnosed(tmp_path, **setup)
    target = picture.target
    expected = tensor_activity(
        Deployment(target.architecture, target.gpu, target.layout), batch=16, step_ms=533
    )
    assert 0.0003 < expected.low < 0.0005  # about 0.04 %; work that every GPU repeats adds to a plain quarter
    assert expected.high < 0.012
    note = next(line.text for line in answer.notes if "tensor pipe" in line.text)
    assert "proves nothing" in note
