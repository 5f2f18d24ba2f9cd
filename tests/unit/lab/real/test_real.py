import gzip
import json
import os
import random
import socket
import sys
import tomllib
from pathlib import Path

import pytest

from stepline.errors import UnreadableEvidence, UsageError
from stepline.lab.real import engine, read_matrix, run_matrix
from stepline.lab.real.load import Seen, Sent, prompt, row
from stepline.lab.real.matrix import Level
from stepline.lab.real.scrub import scrub

MATRIX = """
engine = "sglang"
version = "0"
gpu = "none"
flags = []
[level]
input_tokens = 8
output_tokens = 20
seconds = 0.4
[model.tiny]
vocab_size = 100
[[case]]
name = "broken"
model = "tiny"
wave = 1
fault = "does not start"
expected = ""
flags = ["--refuse"]
level = [{concurrency = 1}]
[[case]]
name = "fine"
wave = 1
model = "tiny"
fault = ""
expected = ""
forbidden = ["H302"]
profile = {concurrency = 1}
level = [{concurrency = 3}, {concurrency = 2, requests = 4, shared_prefix_tokens = 4}]
"""


@pytest.fixture
def matrix_file(tmp_path: Path) -> Path:
    path = tmp_path / "matrix.toml"
    path.write_text(MATRIX)
    return path


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def test_a_run_keeps_what_finished_and_goes_on_after_a_failure(
    matrix_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = Path(__file__).with_name("fake_engine.py")
    monkeypatch.setattr(engine, "LAUNCH", (sys.executable, str(fake)))
    out = tmp_path / "captures"
    matrix = read_matrix(matrix_file)
    assert run_matrix(matrix, out, port=free_port(), grace_s=0, ready_s=30) == ["broken"]
    assert "cannot start" in (out / "broken.failed.log").read_text()
    fine = out / "fine"
    timed, counted = json.loads((fine / "sweep.json").read_text())
    assert (timed["C"], timed["failed"], timed["cached_tokens"]) == (3, 0, 3)
    assert timed["tok_s"] > 100
    assert timed["step_ms"] == pytest.approx(3000 / timed["tok_s"], rel=0.01)
    assert (counted["requests"], counted["cut"]) == (4, 0)
    assert (fine / "server.log").read_text().startswith("models site-packages/sglang/srt/a.py")
    assert json.loads((fine / "config.json").read_text()) == {"vocab_size": 100}
    assert json.loads(gzip.decompress((fine / "decode-TP-0.trace.json.gz").read_bytes())) == {"steps": 8}
    truth = tomllib.loads((fine / "truth.toml").read_text())
    assert (truth["forbidden"], truth["idle_engines_on_the_gpu"]) == (["H302"], [])
    before = (fine / "truth.toml").stat().st_mtime_ns
    run_matrix(matrix, out, only=["fine"], port=free_port())
    assert (fine / "truth.toml").stat().st_mtime_ns == before
    with pytest.raises(UsageError, match="fine"):
        run_matrix(matrix, out, only=["other"])


def test_a_capture_that_breaks_off_leaves_no_finished_folder(
    matrix_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies = tmp_path / "dies.py"
    dies.write_text('print("The server is fired up and ready to roll!")')
    monkeypatch.setattr(engine, "LAUNCH", (sys.executable, str(dies)))
    assert run_matrix(
        read_matrix(matrix_file), tmp_path / "c", only=["fine"], port=free_port(), grace_s=0
    ) == ["fine"]
    assert not (tmp_path / "c" / "fine").exists()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('fault = ""', 'falt = ""', "falt"),
        ("level = [{concurrency = 1}]", "level = [{concurrency = 1.5}]", "int"),
        ('name = "fine"', 'name = "broken"', "used twice"),
        ('model = "tiny"', 'model = "big"', "big"),
        ("seconds = 0.4", "", "without seconds or requests"),
    ],
)
def test_a_matrix_that_cannot_be_right_is_refused(matrix_file: Path, old: str, new: str, says: str) -> None:
    matrix_file.write_text(MATRIX.replace(old, new))
    with pytest.raises(UnreadableEvidence, match=says):
        read_matrix(matrix_file)


def test_prompts_share_what_they_should_and_nothing_else() -> None:
    rng = random.Random(1)  # noqa: S311
    one, two = prompt(rng, 100, 60, 5000), prompt(rng, 100, 60, 5000)
    assert len(one) == len(two) == 100
    assert one[:60] == two[:60]
    assert one[60:] != two[60:]


def test_a_row_counts_only_its_steady_window() -> None:
    level = Level(concurrency=1, input_tokens=8, output_tokens=10, seconds=4.0)
    seen = Seen()
    for start in (0.0, 1.0, 2.0, 3.0):  # a token every 0.1 s, the first after 0.1 s
        r = Sent(first_round=start == 0, sent_s=start, first_s=start + 0.1, last_s=start + 1.0)
        r.first_tokens, r.tokens, r.done = 1, 10, True
        seen.requests.append(r)
        seen.chunks += [(start + 0.1 * n, 1, None if n == 1 else 0.1) for n in range(1, 11)]
    got = row(level, seen, 0.0, 4.0)
    assert got["tok_s"] == pytest.approx(10, abs=0.4)
    assert (got["tpot_ms"], got["ttft_ms"], got["requests"]) == (100.0, 100.0, 4)
    none = row(level, Seen(), 0.0, 4.0)
    assert (none["tok_s"], none["step_ms"], none["tpot_ms"], none["ttft_p99_ms"]) == (0.0, None, None, None)


def test_scrub_takes_out_host_and_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "node-7")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "/kit"]))
    text = "/kit/sglang/a.py on node-7: /w/models/m, /usr/lib/python3/dist-packages/b.py"
    assert scrub(text, Path("/w")) == "site-packages/sglang/a.py on host: models/m, dist-packages/b.py"


def test_the_shipped_matrix_is_readable_and_its_twins_exist() -> None:
    matrix = read_matrix(Path(engine.__file__).with_name("h200-sglang.toml"))
    names = {case.name for case in matrix.case}
    assert len(names) >= 20
    assert all(case.twin is None or case.twin in names for case in matrix.case)
    assert all(bool(case.fault) or not case.expected for case in matrix.case)
