"""A server restarted by the user's own command: what was found is stopped, what was is put back, whatever happens."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest

from stepline.sources.address import parse
from stepline.sources.http import Http, Unreachable
from stepline.sources.live.log_copy import LogCopy, LogMark
from stepline.sources.live.restart import RestartFailed, ServerCommand

SERVER = """
import http.server, json, sys, time
port, name, delay = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
time.sleep(delay)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"data": [{"id": name}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
print("serving", name, flush=True)
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


class Home:
    """A folder with a server's program, a free port, and the server that runs there."""

    def __init__(self, folder) -> None:
        self.folder = folder
        (folder / "server.py").write_text(SERVER)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.told: list[str] = []
        self.output = folder / "server.log"

    def command(self, longest_s: float = 20, line: str | None = None) -> ServerCommand:
        line = line or f"exec {sys.executable} {self.folder}/server.py {self.port} {{flags}}"
        address = parse(f"http://127.0.0.1:{self.port}")
        return ServerCommand(address, line, self.output, longest_s=longest_s, tell=self.told.append)

    def serves(self) -> str | None:
        """The name under which a server answers."""
        try:
            listed = Http(parse(f"http://127.0.0.1:{self.port}"), timeout_s=2).get("/v1/models").json()
        except Unreachable:
            return None
        return None if listed is None else listed["data"][0]["id"]


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path)
    yield home
    for process in psutil.process_iter(["cmdline"]):
        if str(tmp_path / "server.py") in (process.info["cmdline"] or ()):
            process.kill()


@pytest.fixture
def found(home):
    """The server as its user started it."""
    with home.output.open("ab") as log:
        server = subprocess.Popen(
            [sys.executable, home.folder / "server.py", str(home.port), "found", "0"], stdout=log
        )
    deadline = time.monotonic() + 20
    while home.serves() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    yield server
    server.kill()
    server.wait()


def test_the_found_server_is_stopped_and_another_answers(home, found):
    server = home.command()
    assert server.stops() == f"process {found.pid} ({psutil.Process(found.pid).name()})"
    server.restart("changed 0")
    assert home.serves() == "changed"
    assert found.wait(timeout=5) == -signal.SIGTERM
    assert home.told[0].startswith(f"stopping process {found.pid}")
    assert home.told[1].endswith(f"{home.port} changed 0"), "the command is shown before it runs"
    server.put_back("found 0")
    assert home.serves() == "found"


def test_the_present_flags_are_read_from_the_running_process(home, found):
    command = home.command()
    assert command.present("--port 5") == ""
    found.kill()
    found.wait()
    line = f"exec {sys.executable} {home.folder}/server.py {home.port} x 0 --cap 4 --graphs --top=a\\ b {{flags}}"
    server = home.command(line=line)
    server.restart("")
    assert server.present("--cap 9") == "--cap 4"
    assert server.present("--graphs --top 3 --new 1") == "--graphs '--top=a b'"


def test_a_server_that_is_back_already_is_left_alone(home):
    server = home.command()
    server.restart("found 0")
    pid = psutil.Process().children(recursive=True)[0].pid
    server.put_back("found 0")
    assert psutil.pid_exists(pid)
    assert home.serves() == "found"


def test_a_command_that_fails_says_its_last_words(home, found):
    server = home.command()
    with pytest.raises(RestartFailed, match="ended with 1: ValueError: could not convert"):
        server.restart("changed soon")
    server.put_back("found 0")
    assert home.serves() == "found"


def test_a_start_that_takes_too_long_is_given_up(home):
    server = home.command(longest_s=1.5)
    with pytest.raises(RestartFailed, match="no answer within 2 s"):
        server.restart("changed 30")


def test_a_server_that_cannot_be_put_back_is_told_with_the_command(home):
    line = "exit 3 # {flags}"
    with pytest.raises(RestartFailed, match=r"the server is not back .*; run by hand: exit 3 # found"):
        home.command(line=line).put_back("found")


def test_a_key_reaches_neither_the_command_nor_what_is_shown(home, monkeypatch):
    monkeypatch.setenv("STEPLINE_API_KEY", "sk-0123456789abcdef")
    server = home.command(line='echo "key=$STEPLINE_API_KEY"; false {flags}')
    with pytest.raises(RestartFailed, match=r"key=$"):
        server.restart("--api-key sk-9876543210abcdef")
    assert "sk-9876543210abcdef" not in "".join(home.told)


def test_of_a_log_that_goes_on_only_the_new_servers_lines_are_kept(tmp_path):
    log, copy = tmp_path / "server.log", tmp_path / "copy.log"
    log.write_text("old line\n" * 100)
    mark = LogMark.of(log)
    with log.open("a") as file:
        file.write("new line\n")
    LogCopy(log, copy, str, since=mark)
    assert copy.read_text() == "new line\n"


def test_a_log_that_was_written_anew_is_kept_whole(tmp_path):
    log, copy = tmp_path / "server.log", tmp_path / "copy.log"
    log.write_text("old line\n" * 100)
    mark = LogMark.of(log)
    log.write_text("new line, and longer\n" * 100)
    LogCopy(log, copy, str, since=mark)
    assert copy.read_text() == log.read_text()


@pytest.fixture
def serve(home):
    """A start script of the simulated server, and that server with a cap on its batch, as a user has them."""
    script = home.folder / "serve.sh"
    serves = f"-m stepline lab serve --model meta-llama/Llama-3.1-8B --port {home.port}"
    script.write_text(f'#!/bin/sh\n[ "$1" = slow ] && sleep 60\nexec {sys.executable} {serves} "$@"\n')
    script.chmod(0o755)
    with home.output.open("ab") as log:
        server = subprocess.Popen(
            [script, "--fault", "S201:3"], stdout=subprocess.DEVNULL, stderr=log, start_new_session=True
        )
    while home.serves() is None and server.poll() is None:
        time.sleep(0.1)
    yield script
    for process in psutil.process_iter(["cmdline"]):
        if str(home.port) in (process.info["cmdline"] or ()):
            process.kill()
    server.wait()


def diagnose(home, script, tried: str, **more) -> subprocess.Popen[str]:
    command = [
        *(sys.executable, "-m", "stepline", "diagnose", f"http://127.0.0.1:{home.port}"),
        *("--gpu", "h200", "--concurrency", "16", "--no-profile", "--budget", "60s"),
        *("--save", home.folder / "trial", "--json", home.folder / "answer.json"),
        *("--restart", f"{script} {{flags}}", "--try", tried),
    ]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def capped(home) -> bool:
    """The running server has the cap that it was found with."""
    info = Http(parse(f"http://127.0.0.1:{home.port}")).get("/server_info").json()
    return info["internal_states"][0]["effective_max_running_requests_per_dp"] == 4


def test_a_cap_lifted_is_measured_in_turns_and_put_back(home, serve):
    run = diagnose(home, serve, "--fault healthy")
    _, told = run.communicate(timeout=200)
    assert capped(home)
    if "the client could not keep up" in told:
        pytest.skip("this machine is too busy for the client to measure a change")
    assert run.returncode == 0, told
    trial = home.folder / "trial"
    arms = sorted(path.name for path in trial.iterdir())
    assert arms == ["1-before", "2-after", "3-after", "4-before"]
    assert json.loads((trial / "2-after" / "server.json").read_text())["restarted_with"] == "--fault healthy"
    compare = [sys.executable, "-m", "stepline", "compare", "--gpu", "h200", "--json", "-"]
    sides = (
        "--before",
        trial / "1-before",
        trial / "4-before",
        "--after",
        trial / "2-after",
        trial / "3-after",
    )
    verdict = json.loads(subprocess.run([*compare, *sides], stdout=subprocess.PIPE, check=True).stdout)
    assert (verdict["verdict"], verdict["order"]) == ("better", "ABBA")
    promise = next(one for one in verdict["predictions"] if one["code"] == "S201")
    assert promise["measured"] == pytest.approx(promise["predicted"], rel=0.25)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped_while_the_changed_server_starts_the_present_one_is_put_back(home, serve, number):
    run = diagnose(home, serve, "slow --fault healthy")
    trial, log = home.folder / "trial", home.output
    deadline = time.monotonic() + 100
    while not (trial / "1-before" / "client.jsonl").is_file() and time.monotonic() < deadline:
        time.sleep(0.2)
    while home.serves() is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.0)
    assert run.poll() is None, run.communicate()[1]
    os.kill(run.pid, number)
    _, told = run.communicate(timeout=60)
    assert run.returncode == 130, told
    assert capped(home), log.read_text()[-500:]
