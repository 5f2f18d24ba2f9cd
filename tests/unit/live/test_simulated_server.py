"""From Python and from the command line against the lab's simulated SGLang, in real time."""

import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

import stepline
from stepline.cli.main import main
from stepline.sources.address import parse
from stepline.sources.http import Http, Unreachable


@pytest.fixture
def url(tmp_path) -> Iterator[str]:
    """A server that runs four requests at most."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "stepline", "lab", "serve", "--engine", "sglang", "--fault", "S201:3"]
    command += ["--model", "meta-llama/Llama-3.1-8B", "--gpu", "h200", "--port", str(port)]
    with subprocess.Popen(
        [*command, "--log", str(tmp_path / "server.log")], stdout=subprocess.DEVNULL
    ) as server:
        address = f"http://127.0.0.1:{port}"
        for _ in range(100):
            try:
                if Http(parse(address)).get("/health").ok:
                    break
            except Unreachable:
                time.sleep(0.1)
        yield address
        server.terminate()


def test_record_returns_what_diagnose_takes(url, tmp_path):
    evidence = stepline.record(url, tmp_path / "capture", budget="40s", concurrency="1,16", profile=False)
    assert [level.concurrency for level in evidence.runs[0].levels] == [1, 16]
    found = stepline.diagnose(evidence, gpu="h200", model="meta-llama/Llama-3.1-8B").findings
    assert found[0].code in ("S201", "L101"), "L101 only where this machine is too busy for the client"


def test_without_a_restart_the_commands_that_prove_the_finding_are_shown(url, capsys):
    options = ["--gpu", "h200", "--concurrency", "16", "--no-profile", "--budget", "30s"]
    assert main(["diagnose", url, *options]) == 0
    told = capsys.readouterr()
    shown = [
        "to prove S201, restart the server with --max-running-requests 16 and compare:",
        f"  stepline record {url} -o after --concurrency 16 --no-profile   (after it)",
        "  stepline compare before after",
    ]
    assert [
        line for line in shown if line not in told.err
    ] == [] or "L101 client-bound  confirmed" in told.out


def test_a_plan_loads_nothing(url, capsys, tmp_path):
    assert main(["plan", url, "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert [step["concurrency"] for step in planned if step["sure"]] == [1, 64, 8]
    assert main(["plan", url, "--budget", "12s"]) == 0
    assert "at most 12 s of server time" in capsys.readouterr().out
    assert "Prefill batch" not in (tmp_path / "server.log").read_text()


def test_a_used_server_is_only_watched(url, tmp_path, capsys):
    generate = {"text": "a b c", "sampling_params": {"max_new_tokens": 4000, "ignore_eos": True}}

    def busy() -> None:
        with contextlib.suppress(Unreachable):  # the server ends before the answer does
            Http(parse(url), timeout_s=60).post("/generate", generate)

    other = threading.Thread(target=busy, daemon=True)
    other.start()
    time.sleep(0.5)
    folder = tmp_path / "capture"
    assert main(["record", url, "-o", str(folder), "--budget", "4s"]) == 0
    told = capsys.readouterr().err
    assert "1 requests of others run on this server; only watching" in told
    assert not (folder / "client.jsonl").exists()
    assert (folder / "metrics.txt").exists()
    assert main(["record", url, "-o", str(tmp_path / "loaded"), "--budget", "4s", "--load"]) == 0
    told = capsys.readouterr().err
    assert "about to load it" in told
    assert "profile" not in told, "a load that was allowed is no leave to freeze the others"


def test_the_demo_reveals_what_it_planted(capsys):
    assert main(["demo", "--seed", "1"]) == 0
    told = capsys.readouterr().out
    assert "Planted was S201:2" in told
    assert "S201 batch-capped" in told or "L101 client-bound" in told
