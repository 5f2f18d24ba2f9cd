import os
import socket
import sys
import tomllib
from pathlib import Path

import pytest

import stepline
from stepline.cli.lab_real import record
from stepline.errors import UnreadableEvidence, UsageError
from stepline.lab.real import engine, read_matrix, run_matrix
from stepline.lab.real.scrub import scrub

MATRIX = '''
engine = "sglang"
version = "0"
gpu = "none"
flags = []
[load]
budget = "20s"
concurrency = [2]
input_tokens = 64
output_tokens = 32
[model.tiny]
vocab_size = 100
[[case]]
name = "broken"
model = "tiny"
wave = 1
fault = "does not start"
expected = ""
flags = ["--refuse"]
[[case]]
name = "capped"
wave = 1
model = "tiny"
fault = "at most 4 requests run"
expected = "S201"
forbidden = ["H302"]
flags = ["--fault", "S201:3"]
load = {concurrency = [12]}
[[case]]
name = "shared-prefix"
on = "capped"
wave = 1
fault = "half of each prompt is shared"
expected = ""
load = {shared_prefix_tokens = 32, temperature = 1.0}
[[case]]
name = "beside"
on = "capped"
wave = 1
fault = "another client and another process"
expected = ""
traffic = {every_s = 0.2, input_tokens = 300, output_tokens = 64}
neighbour = """
import pathlib, time
print("on", flush=True)
for moment in range(600):
    pathlib.Path("SEEN").write_text(str(moment))
    time.sleep(0.1)
"""
'''


@pytest.fixture(autouse=True)
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Path(__file__).with_name("simulated_engine.py")
    monkeypatch.setitem(engine.LAUNCH, "sglang", (sys.executable, str(script)))


@pytest.fixture
def matrix_file(tmp_path: Path) -> Path:
    path = tmp_path / "matrix.toml"
    path.write_text(MATRIX.replace("SEEN", str(tmp_path / "seen")))
    return path


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def test_a_run_keeps_what_finished_and_goes_on_after_a_failure(matrix_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "recordings"
    matrix = read_matrix(matrix_file)
    assert run_matrix(matrix, out, record, port=free_port(), grace_s=0, ready_s=30) == ["broken"]
    assert "cannot start" in (out / "broken.failed.log").read_text()
    assert sorted(path.name for path in out.iterdir()) == [
        "beside",
        "broken.failed.log",
        "capped",
        "shared-prefix",
    ]
    capped = stepline.read(out / "capped").runs[0]
    assert max(report.running or 0 for report in capped.decodes) == 4
    assert [level.concurrency for level in capped.levels] == [12]
    shared = stepline.read(out / "shared-prefix").runs[0]
    assert [level.concurrency for level in shared.levels] == [2]
    texts = [path.read_text() for path in (out / "capped").iterdir() if path.suffix != ".gz"]
    assert not any("stepline-lab-" in text for text in texts)
    truth = tomllib.loads((out / "shared-prefix" / "truth.toml").read_text())
    assert (truth["model"], truth["flags"], truth["load"]["temperature"]) == (
        "tiny",
        ["--fault", "S201:3"],
        1.0,
    )
    assert 3 < truth["recording_s"] < 60
    assert "traffic" not in truth
    crowded = stepline.read(out / "beside").runs[0]
    assert max(report.running or 0 for report in crowded.decodes) > 2  # streams of the load alone
    assert tomllib.loads((out / "beside" / "truth.toml").read_text())["traffic"]["input_tokens"] == 300
    last = (tmp_path / "seen").read_text()
    before = (out / "capped" / "truth.toml").stat().st_mtime_ns
    assert run_matrix(matrix, out, record, only=["capped"], port=free_port()) == []
    assert (out / "capped" / "truth.toml").stat().st_mtime_ns == before
    assert int(last) > 0
    assert (tmp_path / "seen").read_text() == last  # nobody writes there any more
    with pytest.raises(UsageError, match="capped"):
        run_matrix(matrix, out, record, only=["other"])


def test_an_engine_that_dies_under_load_leaves_its_log_and_what_was_measured(
    matrix_file: Path, tmp_path: Path
) -> None:
    def dies(_url: str, folder: Path, _log: Path, _load: object) -> None:
        folder.mkdir()
        raise UsageError("it is gone")

    out = tmp_path / "recordings"
    assert run_matrix(read_matrix(matrix_file), out, dies, only=["capped"], port=free_port(), grace_s=0) == [
        "capped"
    ]
    assert sorted(path.name for path in out.iterdir()) == ["capped.failed.log", "capped.partial"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('fault = "does', 'falt = "does', "falt"),
        ("concurrency = [2]", "concurrency = [2.5]", "int"),
        ('name = "capped"', 'name = "broken"', "used twice"),
        ('model = "tiny"', 'model = "big"', "big"),
        ('on = "capped"', 'on = "nobody"', "engine of nobody"),
        ('engine = "sglang"', 'engine = "mine"', "mine"),
    ],
)
def test_a_matrix_that_cannot_be_right_is_refused(matrix_file: Path, old: str, new: str, says: str) -> None:
    matrix_file.write_text(MATRIX.replace(old, new))
    with pytest.raises(UnreadableEvidence, match=says):
        read_matrix(matrix_file)


def test_scrub_takes_out_host_and_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "node-7")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "/kit"]))
    text = "/kit/sglang/a.py on node-7: /w/models/m, /usr/lib/python3/dist-packages/b.py"
    assert scrub(text, Path("/w")) == "site-packages/sglang/a.py on host: models/m, dist-packages/b.py"


@pytest.mark.parametrize("name", ["deepseek", "sglang", "vllm"])
def test_the_shipped_matrices_are_readable_and_their_twins_exist(name: str) -> None:
    matrix = read_matrix(Path(engine.__file__).with_name(f"{name}.toml"))
    names = {case.name for case in matrix.case}
    assert len(names) >= 3
    assert all(case.twin is None or case.twin in names for case in matrix.case)
    assert all(bool(case.fault) or not case.expected for case in matrix.case)
