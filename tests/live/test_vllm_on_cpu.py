"""`stepline diagnose URL` against a real vLLM: who it is, a cap, a client that cannot keep up, a kill in the middle."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.live.conftest import CLIENT_CORES, Served, on

KEY = "sk-live-0123456789abcdef"
ATTEMPTS = 3


def start(*arguments: str | Path, **environment: str) -> subprocess.Popen[str]:
    """The command as a user runs it, on a core of its own."""
    return subprocess.Popen(
        [*on(CLIENT_CORES), sys.executable, "-m", "stepline", *map(str, arguments)],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], timeout_s: float) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=timeout_s)
    assert "Traceback" not in err
    return process.returncode, out, err


def confirmed(answer: dict) -> list[str]:
    return [finding["code"] for finding in answer["findings"] if finding["status"] == "confirmed"]


def diagnosed(folder: Path, url: str, *more: str | Path, **environment: str) -> tuple[dict, str]:
    """The answer and what was told; tried again while a busy machine made the client late, which it says itself."""
    for attempt in range(ATTEMPTS):
        answer, capture = folder / f"answer{attempt}.json", folder / f"capture{attempt}"
        run = start("diagnose", url, "--save", capture, "--json", answer, *more, **environment)
        code, out, err = finish(run, 240)
        assert code == 0, err
        (folder / f"out{attempt}.txt").write_text(out + err)
        said = json.loads(answer.read_text())["runs"][0]
        if "L101" not in [finding["code"] for finding in said["findings"]]:
            break
    return said, err


@pytest.fixture(scope="module")
def plain(engine: Served, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict, str]:
    """A diagnosis within the default settings, with a key that the server does not ask for."""
    folder = tmp_path_factory.mktemp("plain")
    page = folder / "report.html"
    return folder, *diagnosed(
        folder, engine.url, "--concurrency", "1,16,4", "--html", page, STEPLINE_API_KEY=KEY
    )


def last_capture(folder: Path) -> Path:
    """Of the last attempt."""
    return max(folder.glob("capture*"))


def test_the_server_is_recognised(plain, engine):
    _, answer, err = plain
    assert (answer["target"]["engine"], answer["target"]["version"]) == ("vllm", "0.32.0")
    knobs = {knob["name"]: knob["value"] for knob in answer["target"]["settings"]}
    assert knobs["context_length"] == "2048"
    assert knobs["max_running"] == "128"
    assert str(engine.log) in err, "the log was found by itself"


def test_the_batch_is_the_engines_own_and_the_law_is_measured(plain):
    _, answer, _ = plain
    assert answer["load"]["running"] == 16
    assert answer["load"]["queued"] == 0
    assert [point["running"] for point in answer["step"]["law"]["points"]] == [1, 4, 16]


def test_nothing_untrue_is_confirmed(plain):
    _, answer, _ = plain
    assert confirmed(answer) == []


def test_the_profile_is_taken_and_read(plain):
    folder, answer, _ = plain
    assert (last_capture(folder) / "decode.trace.json.gz").is_file()
    assert any("decode.trace.json.gz" in line for line in answer["provenance"]["read"])
    assert any("the trace holds no GPU work" in warning["text"] for warning in answer["warnings"])


def test_the_recording_answers_again_later(plain):
    folder, answer, _ = plain
    again = folder / "again.json"
    assert finish(start("diagnose", last_capture(folder), "--json", again, "--quiet"), 60)[0] == 0
    assert json.loads(again.read_text())["runs"][0]["verdict"] == answer["verdict"]


def test_a_key_is_kept_nowhere(plain):
    folder, _, _ = plain
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 6
    assert [path.name for path in files if KEY.encode() in path.read_bytes()] == []


def test_a_cap_is_named(capped, tmp_path):
    said, _ = diagnosed(tmp_path, capped.url, "--concurrency", "1,16,4", "--no-profile")
    first = said["findings"][0]
    assert first["code"] == "S201"
    assert "holds the batch at 4 of 16" in first["headline"]
    assert said["load"]["running"] == 4


def test_a_client_that_cannot_keep_up_accuses_itself_alone(engine, tmp_path):
    answer = tmp_path / "answer.json"
    run = start(
        *(
            "diagnose",
            engine.url,
            "--json",
            answer,
            "--concurrency",
            "1,8",
            "--no-profile",
            "--budget",
            "60s",
        ),
        "--load",
    )
    while run.poll() is None:  # seven tenths of the time it is not on the processor
        run.send_signal(signal.SIGSTOP)
        time.sleep(0.35)
        run.send_signal(signal.SIGCONT)
        time.sleep(0.15)
    code, _, err = finish(run, 10)
    assert code in (0, 3), err
    assert [finding["code"] for finding in json.loads(answer.read_text())["runs"][0]["findings"]] == ["L101"]


def test_killed_in_the_middle_the_recording_says_what_it_can(engine, tmp_path):
    folder = tmp_path / "capture"
    run = start("record", engine.url, "-o", folder, "--concurrency", "1,8,16,4", "--no-profile")
    deadline = time.monotonic() + 120
    while not (folder / "client.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(3)  # inside the second level
    assert run.poll() is None, "still measuring"
    run.kill()
    run.communicate()
    code, out, err = finish(start("diagnose", folder), 60)
    assert code in (0, 3), err
    assert "vllm 0.32.0" in out


def test_a_server_that_dies_ends_the_run_with_what_was_measured(capped, tmp_path):
    folder = tmp_path / "capture"
    began = time.monotonic()
    run = start("diagnose", capped.url, "--save", folder, "--concurrency", "1,16,4", "--budget", "60s")
    while not (folder / "client.jsonl").exists() and time.monotonic() < began + 60:
        time.sleep(0.2)
    time.sleep(2)
    capped.stop()
    code, out, err = finish(run, 90)
    assert time.monotonic() - began < 90
    assert code in (0, 3), err
    assert "stopping: " in err
    assert "vllm 0.32.0" in out
