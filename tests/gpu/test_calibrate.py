"""`stepline lab calibrate` on the GPU here, and a roofline that uses it."""

import json

from stepline.cli.main import main


def test_what_is_measured_is_possible_and_serves_the_roofline(tmp_path, capsys):
    kept = tmp_path / "calibration.json"
    assert main(["lab", "calibrate", "--seconds", "12", "--out", str(kept)]) == 0
    measured = json.loads(kept.read_text())["measured"]
    rates = {
        each["name"]: each["bytes"] / each["ms"] * 1e3 for each in measured if each["group"] == "bandwidth"
    }
    assert rates
    assert all(1e11 < rate < 1e13 for rate in rates.values())
    capsys.readouterr()
    gpu = json.loads(kept.read_text())["machine"]["gpu"]
    asked = ["roofline", "llama-3.1-8b", "--gpu", gpu, "--calibration", str(kept), "--batch", "8"]
    assert main(asked) == 0
    assert "typical" in capsys.readouterr().out
