"""What a newcomer sees first: 80 columns and 24 lines."""

import io
import shutil

import pytest

from stepline.cli.main import main
from stepline.findings.diagnose import diagnose
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Setup
from stepline.report.terminal import draw
from stepline.sources.read import read_one_run as read
from tests.captures import DATA, RECORDED

SCREEN = 24


def _screen(folder, **setup):
    stream = io.StringIO()
    draw(diagnose(assess(read([folder]), Setup(**setup))), stream, width=80)
    printed = stream.getvalue().splitlines()
    assert max(map(len, printed)) <= 80
    return " ".join(" ".join(printed[:SCREEN]).split())


@pytest.mark.parametrize(
    ("folder", "cause", "cost", "proof", "following"),
    [
        (RECORDED / "batch-cap", "A cap holds the batch at 8", "+5,407 tok/s", "8 requests run while 16 and 64",
         ("try raise the cap", "prove stepline compare BEFORE AFTER")),
        (DATA / "h200-sglang" / "nograph", "Decode runs without CUDA graphs", "+5,371 tok/s", "905 decode passes",
         ("try remove --disable-cuda-graph", "prove stepline compare BEFORE AFTER")),
        (RECORDED / "founding-case", "as work over the configured context", "+11,723 tok/s", "the step grows by 0.71",
         ("try lower the configured context", "prove")),
    ],
    ids=["cap8", "nograph", "v4_torch_1m"],
)  # fmt: skip
def test_cause_cost_proof_and_next_command_are_on_the_first_screen(folder, cause, cost, proof, following):
    screen = _screen(folder, gpu="h200")
    for expected in (cause, cost, proof, *following):
        assert expected in screen


def test_a_healthy_server_is_called_healthy_on_the_first_screen():
    screen = _screen(DATA / "h200-sglang" / "healthy", gpu="h200")
    assert (
        "No cause found; a decode step takes 6.57 ms at 64 running, 1.8× its floor: "
        "decode is at 102 % of what such a server typically takes."
    ) in screen
    assert "should read 15 % (tile-padded FLOPs)" in screen
    assert "▆▆▇█ N→ms (windows): 1→4.92 (22) 8→5.08 (20) 32→5.71 (13) 64→6.57 (6)" in screen


def test_a_missing_floor_says_what_would_give_one():
    assert "floor not known: the GPU is not known: give --gpu" in _screen(DATA / "h200-sglang" / "healthy")


def test_a_trace_is_named_within_its_folder(tmp_path, capsys):
    for file in (DATA / "h200-sglang" / "v4_torch_8k").iterdir():
        shutil.copy(file, tmp_path)
    (tmp_path / "traces").mkdir()
    shutil.copy(DATA / "traces" / "v4_torch_8k.json.gz", tmp_path / "traces")
    assert main(["diagnose", str(tmp_path), "--gpu", "h200", "--json", "-"]) == 0
    out = capsys.readouterr().out
    assert "traces/v4_torch_8k.json.gz" in out
    assert str(tmp_path) not in out
