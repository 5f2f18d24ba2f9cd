"""The command: exit codes, refusals, repeats, JSON against its schema, Markdown and 80 columns."""

import json
import random
from importlib import resources
from pathlib import Path

import jsonschema
import msgspec
import pytest

from stepline.cli.main import main
from stepline.errors import UsageError
from stepline.findings.compare import compare
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Setup
from stepline.report.comparison_md import to_markdown
from stepline.report.jsonout import schema
from stepline.sources.read import read_one_run as read

DATA = Path(__file__).parents[2] / "data" / "h200-sglang-2"
CAPPED, SOUND = str(DATA / "moe_cap16"), str(DATA / "moe_healthy")
LINE = (
    "[2026-05-02 {hour:02}:00:{second:02} TP0] Decode batch, #running-req: {running}, #token: {tokens}, "
    "gen throughput (token/s): {rate:.3f}, #queue-req: 0\n"
)


def log(
    folder: Path, step_ms: float, *, noise: float = 0.002, hour: int = 10, running: int = 8, seed: int = 1
) -> str:
    """A run's folder with a log of twelve decode lines, whose steps scatter by `noise`."""
    draw = random.Random(seed)  # noqa: S311  # no secret
    folder.mkdir(parents=True)
    lines = [
        LINE.format(
            hour=hour,
            second=second,
            running=running,
            tokens=500 * running,
            rate=1000 * running / (step_ms * (1 + draw.gauss(0, noise))),
        )
        for second in range(12)
    ]
    (folder / "server.log").write_text("".join(lines))
    return str(folder)


def verdict(capsys, *arguments) -> dict:
    code = main(["compare", *arguments, "--json", "-"])
    out, err = capsys.readouterr()
    assert err == ""
    answer = json.loads(out)
    jsonschema.validate(answer, schema("comparison"))
    assert code == {"better": 0, "same": 0, "worse": 1, "inconclusive": 3}[answer["verdict"]]
    return answer


def refusal(capsys, *arguments) -> str:
    assert main(["compare", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def test_better_and_worse(capsys, tmp_path):
    slow, fast = log(tmp_path / "slow", 10.0), log(tmp_path / "fast", 8.0)
    assert verdict(capsys, slow, fast)["verdict"] == "better"
    assert verdict(capsys, fast, slow)["verdict"] == "worse"


def test_two_quiet_runs_are_the_same(capsys, tmp_path):
    answer = verdict(capsys, log(tmp_path / "a", 10.0), log(tmp_path / "b", 10.05, seed=2))
    assert answer["verdict"] == "same"
    assert "one run a side" in answer["covers"]


def test_two_noisy_single_runs_are_inconclusive_with_the_runs_needed(capsys, tmp_path):
    one, other = log(tmp_path / "a", 10.0, noise=0.03), log(tmp_path / "b", 10.2, noise=0.03, seed=2)
    answer = verdict(capsys, one, other)
    assert answer["verdict"] == "inconclusive"
    assert 1 < answer["more_runs"] < 100


def test_a_larger_effect_of_interest_needs_fewer_runs(capsys, tmp_path):
    one, other = log(tmp_path / "a", 10.0, noise=0.03), log(tmp_path / "b", 10.2, noise=0.03, seed=2)
    three, five = (verdict(capsys, one, other, "--effect", effect) for effect in ("3", "5"))
    assert 0 < five["more_runs"] < three["more_runs"]


def test_repeats_in_the_order_abba_are_recognised_and_drift_is_shown(capsys, tmp_path):
    before = [log(tmp_path / "a1", 10.0, hour=10), log(tmp_path / "a2", 10.8, hour=13, seed=2)]
    after = [log(tmp_path / "b1", 9.2, hour=11, seed=3), log(tmp_path / "b2", 9.6, hour=12, seed=4)]
    answer = verdict(capsys, "--before", *before, "--after", *after)
    assert answer["order"] == "ABBA"
    assert answer["lines"][0]["drift"][0] == pytest.approx(10.0 / 10.8 - 1, abs=0.01)
    assert [doubt["topic"] for doubt in answer["doubts"] if doubt["topic"] in ("drift", "order")] == ["drift"]
    steady = [log(tmp_path / "a3", 10.4, hour=14), log(tmp_path / "a4", 10.4, hour=17, seed=2)]
    narrow = verdict(capsys, "--before", *steady, "--after", *after)["lines"][0]["interval"]
    wide = answer["lines"][0]["interval"]
    assert wide["high"] / wide["low"] > narrow["high"] / narrow["low"]


def test_all_of_one_side_before_the_other_is_doubted(capsys, tmp_path):
    before = [log(tmp_path / "a1", 10.0, hour=10), log(tmp_path / "a2", 10.0, hour=11, seed=2)]
    after = [log(tmp_path / "b1", 9.0, hour=12, seed=3), log(tmp_path / "b2", 9.0, hour=13, seed=4)]
    answer = verdict(capsys, "--before", *before, "--after", *after)
    assert answer["order"] == "AABB"
    assert "order" in [doubt["topic"] for doubt in answer["doubts"]]


def test_a_folder_of_folders_is_repeats(capsys, tmp_path):
    for name, step in (("before", 10.0), ("after", 9.0)):
        for number in (1, 2, 3):
            log(tmp_path / name / str(number), step, seed=number)
    answer = verdict(capsys, str(tmp_path / "before"), str(tmp_path / "after"))
    assert answer["lines"][0]["runs"] == [3, 3]
    assert "3 and 3 runs" in answer["covers"]


def test_other_instruments_and_other_batches_are_refused(capsys, tmp_path):
    windows = log(tmp_path / "a", 10.0)
    (tmp_path / "steps.csv").write_text("running,step_ms\n8,10.1\n16,11.0\n")
    assert "decode windows (log), sglang before and from step times as stated after" in refusal(
        capsys, windows, str(tmp_path / "steps.csv")
    )
    (tmp_path / "sweep.csv").write_text("concurrency,tok_s\n8,800\n")
    assert "before has decode windows (log), sglang and after has rates of a client" in refusal(
        capsys, windows, str(tmp_path / "sweep.csv")
    )
    assert "steps were measured at 8 running before and at 64 after" in refusal(
        capsys, windows, log(tmp_path / "b", 10.0, running=64)
    )


def test_a_side_that_measured_nothing_is_inconclusive(capsys, tmp_path):
    windows = log(tmp_path / "a", 10.0)
    (tmp_path / "config.json").write_text((DATA / "moe_cap16" / "config.json").read_text())
    assert main(["compare", windows, str(tmp_path / "config.json")]) == 3
    assert "no level was measured on both sides" in capsys.readouterr().err


def test_another_gpu_is_refused(tmp_path):
    evidence = read([log(tmp_path / "a", 10.0)])
    one, other = (assess(evidence, Setup(gpu=gpu)) for gpu in ("h200", "h100"))
    with pytest.raises(UsageError, match=r"not comparable: the GPU is NVIDIA H200.* before and NVIDIA H100"):
        compare([one], [other])


def test_repeats_with_another_setting_are_refused(capsys):
    other = str(DATA / "dense_graph")
    assert "runs of one side must be repeats: BEFORE has max_running 16 and 2048" in refusal(
        capsys, "--before", CAPPED, SOUND, "--after", other
    )


def test_command_lines_that_cannot_be_right(capsys, tmp_path):
    run = log(tmp_path / "a", 10.0)
    assert "two sides are needed" in refusal(capsys)
    assert "1 configuration given" in refusal(capsys, run)
    assert "on both sides" in refusal(capsys, run, run)
    assert "stepline record http://h:1 -o DIR" in refusal(capsys, run, "http://h:1")
    assert "not both" in refusal(capsys, run, run, "--before", run)
    assert "--effect" in refusal(capsys, run, SOUND, "--effect", "0")


def test_the_report_fits_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["compare", CAPPED, SOUND, "--gpu", "h200"]) == 0
    out = capsys.readouterr().out
    assert max(len(line) for line in out.splitlines()) <= 80
    assert out.splitlines()[2].startswith("Better: 1.9×")
    assert "S201 batch-capped (max_running changed" in " ".join(out.split())


def test_markdown_is_written_and_active_signs_are_not(capsys, tmp_path):
    assert main(["compare", CAPPED, SOUND, "--gpu", "h200", "--md", str(tmp_path / "c.md"), "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    text = (tmp_path / "c.md").read_text()
    assert text.startswith("### 🟢 stepline: better")
    assert "| C = 48 | 2,281 | 4,254 | 1.9× |" in text


def test_a_server_cannot_write_into_the_markdown(tmp_path):
    evidence = read([log(tmp_path / "a", 10.0)])
    hostile = "<img onerror=x>|`a`[b](c)\n# d"
    picture = assess(evidence, Setup(gpu="h200"))
    result = compare([picture], [picture])
    result = msgspec.structs.replace(result, left_out=(hostile,))
    assert "- &lt;img onerror=x&gt;\\|\\`a\\`\\[b\\](c) \\# d" in to_markdown(result)


def test_the_shipped_schema_is_that_of_the_record(capsys):
    shipped = resources.files("stepline.report").joinpath("comparison.schema.json").read_text()
    assert json.loads(shipped) == schema("comparison")
    assert main(["schema", "comparison"]) == 0
    assert json.loads(capsys.readouterr().out) == schema("comparison")
