"""`stepline diagnose URL --restart CMD` against a real vLLM: a cap lifted and put back, measured in turns."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepline.sources.live.process import find_local
from tests.live.conftest import CLIENT_CORES, ENVIRONMENT, VLLM, Served, on

CAP = "--max-num-seqs 4"


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[Served, Path]]:
    """A server that runs four requests at most, and the script that starts it."""
    if not VLLM.exists():
        pytest.skip("no engine here: scripts/live-engine installs one")
    served = Served(tmp_path, *CAP.split())
    script = tmp_path / "serve.sh"
    exports = " ".join(f"{name}={value}" for name, value in ENVIRONMENT.items())
    script.write_text(f'#!/bin/sh\ncd {tmp_path}\nexport {exports}\nexec {shlex.join(served.command)} "$@"\n')
    script.chmod(0o755)
    try:
        served.wait_ready()
        yield served, script
    finally:
        served.stop()
        if (left := find_local(served.port)) is not None:
            os.killpg(os.getpgid(left.pid), signal.SIGKILL)


def test_the_cap_that_the_finding_names_is_lifted_measured_and_put_back(
    started: tuple[Served, Path], tmp_path: Path
) -> None:
    served, script = started
    trial = tmp_path / "trial"
    command = [*on(CLIENT_CORES), sys.executable, "-m", "stepline", "diagnose", served.url, "--no-profile"]
    command += [
        "--concurrency",
        "1,32",
        "--save",
        str(trial),
        "--restart",
        f"{script} {{flags}}",
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=900)
    (tmp_path / "told.txt").write_text(done.stdout + done.stderr)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
    assert f"B, twice:  {script} --max-num-seqs 32" in done.stderr, "the flag follows from the finding"
    knobs = {}
    for arm in ("2-after", "3-after", "4-before"):
        answer = tmp_path / f"{arm}.json"
        again = [
            sys.executable,
            "-m",
            "stepline",
            "diagnose",
            str(trial / arm),
            "--json",
            str(answer),
            "--quiet",
        ]
        subprocess.run(again, check=True)
        target = json.loads(answer.read_text())["runs"][0]["target"]
        knobs[arm] = {knob["name"]: knob["value"] for knob in target["settings"]}["max_running"]
    assert knobs == {"2-after": "32", "3-after": "32", "4-before": "4"}
    assert find_local(served.port) is not None, "it serves again as it did"
    assert "max_running: 4 → 32" in done.stdout
    assert "in time ABBA" in " ".join(done.stdout.split())
    assert "predicted" in done.stdout
    assert "measured" in done.stdout
    # A machine that others use as well may be too unsteady for a verdict, and is then said to be.
    assert "Better: " in done.stdout or "Inconclusive: " in done.stdout
