"""The real captures with their traces, as a user would give them: `stepline diagnose FOLDER --gpu h200`."""

import json

import pytest

from stepline.cli.main import main

pytestmark = pytest.mark.shared


def diagnosed(shared, capsys, name):
    assert (
        main(["diagnose", str(shared / "data" / "h200-sglang" / name), "--gpu", "h200", "--json", "-"]) == 0
    )
    return json.loads(capsys.readouterr().out)["runs"][0]


def test_the_founding_cause_is_confirmed_by_the_extent_of_its_kernels(shared, capsys):
    answer = diagnosed(shared, capsys, "v4_torch_1m")
    top = answer["findings"][0]
    text = " ".join(line["text"] for line in top["evidence"])
    assert (top["code"], top["status"]) == ("K401", "confirmed")
    assert "4,097 = 1,048,576 / 256 + 1" in text
    assert "0.369 ms a layer and request" in text
    assert (
        "configured for 8,192 tokens the step's GPU work would take 2.03 ms" in text
    )  # measured in its twin: 2.02
    assert any("K403" in ruled["rival"] for ruled in top["ruled_out"])


def test_its_twin_waits_for_the_host_within_decode_steps(shared, capsys):
    top = diagnosed(shared, capsys, "v4_torch_8k")["findings"][0]
    assert (top["code"], top["status"]) == ("H301", "confirmed")
    assert any("at 16 running the GPU works 2.0" in line["text"] for line in top["evidence"])
    assert any("S204" in ruled["rival"] for ruled in top["ruled_out"])


@pytest.mark.parametrize("name", ["cap8", "healthy", "nograph", "v4_torch_1m", "v4_torch_8k"])
def test_the_step_is_accounted_for_to_the_last_microsecond(shared, capsys, name):
    answer = diagnosed(shared, capsys, name)
    lines = [line for line in answer["accounting"] if line["measured_ms"] is not None]
    gap = next(line["measured_ms"] for line in lines if line["component"] == "host gap")
    busy = sum(line["measured_ms"] for line in lines) - gap
    assert busy > 0
    # A trace of a busy server shows it a few percent busier than its unprofiled steps are long.
    assert gap > -0.05 * busy
    assert answer["unexplained_ms"] <= 0.1 * (busy + gap)


@pytest.mark.parametrize(("name", "finding"), [("cap8", "S201"), ("healthy", None), ("nograph", "H302")])
def test_stretched_traces_accuse_nobody_of_waiting_for_the_host(shared, capsys, name, finding):
    codes = [found["code"] for found in diagnosed(shared, capsys, name)["findings"]]
    assert codes == ([finding] if finding else [])
