"""Where a recording goes: never into another one, and what cannot be written is said before the server is loaded."""

import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from stepline.cli.main import main
from stepline.sources.read import read_one_run as read
from tests.unit.live import hostile


def url(server) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


@pytest.mark.parametrize("verb", [("record", "-o"), ("diagnose", "--save")])
def test_two_recordings_never_share_a_folder(verb, tmp_path, capsys):
    command, option = verb
    (tmp_path / "client.jsonl").write_text("{}\n")
    with hostile.serving(hostile.answering) as server:
        assert main([command, url(server), option, str(tmp_path)]) == 2
        assert server.asked == [], "refused before any load"
    assert "name a new folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["client.jsonl"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--save", "{file}/capture"], "not a folder to write in"),
        (["--save", "{file}"], "not a folder to write in"),
        (["--log", "{folder}/none.log"], "none.log: no file that can be read"),
        (["--log", "{folder}"], "no file that can be read"),
        (["--json", "{folder}/none/answer.json"], "cannot be written"),
        (["--html", "{folder}"], "cannot be written"),
        (["--fail-on", "L999"], "L999"),
    ],
)
def test_what_cannot_be_written_or_read_is_said_before_any_load(options, says, tmp_path, capsys):
    (tmp_path / "file").write_text("x")
    given = [option.format(file=tmp_path / "file", folder=tmp_path) for option in options]
    with hostile.serving(hostile.answering) as server:
        assert main(["diagnose", url(server), *given]) == 2
        assert server.asked == []
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1


def test_ctrl_c_without_a_folder_keeps_what_was_measured(tmp_path):
    """Inside the second level."""
    with hostile.serving(hostile.answering) as server:
        run = subprocess.Popen(
            [
                *(sys.executable, "-m", "stepline", "diagnose", url(server), "--load"),
                *("--concurrency", "1,2", "--budget", "20s"),
            ],
            env=os.environ | {"TMPDIR": str(tmp_path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 40
        while not list(tmp_path.glob("*/client.jsonl")) and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1.5)
        run.send_signal(signal.SIGINT)
        _, told = run.communicate(timeout=20)
    assert run.returncode == 130
    assert "Traceback" not in told
    (folder,) = tmp_path.glob("stepline-*")
    assert f"what was recorded is kept; next: stepline diagnose {folder}" in told
    assert main(["diagnose", str(folder), "--quiet"]) in (0, 3)


def test_a_diagnosis_leaves_no_folder_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with hostile.serving(hostile.failing) as server:
        assert (
            main(["diagnose", url(server), "--load", "--budget", "4s", "--concurrency", "1", "--quiet"]) == 3
        )
    assert list(tmp_path.iterdir()) == []


def test_a_remote_exporter_is_scraped_without_the_servers_key(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPLINE_API_KEY", "sk-0123456789abcdef")
    asked = []

    class Exporter(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers["Authorization"]))
            body = b'DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu="0",modelName="NVIDIA H200"} 0.03\n'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Quiet."""

    exporter = HTTPServer(("127.0.0.1", 0), Exporter)
    threading.Thread(target=exporter.serve_forever, daemon=True).start()
    command = [
        "record",
        "--load",
        "--budget",
        "4s",
        "--concurrency",
        "1",
        "--quiet",
        "-o",
        str(tmp_path / "capture"),
    ]
    with hostile.serving(hostile.answering) as server:
        assert main([*command, url(server), "--dcgm", f"{url(exporter)}/metrics"]) == 0
    exporter.shutdown()
    exporter.server_close()
    assert set(asked) == {("/metrics", None)}
    run = read([tmp_path / "capture"])
    assert {sample.tensor_busy for sample in run.gpu_samples} == {0.03}
    assert run.server.gpu.value == "NVIDIA H200"
