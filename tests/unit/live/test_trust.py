"""What a server says about this machine's files is not believed, and a profiler is never left running."""

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from stepline.sources.address import parse
from stepline.sources.live.process import find_local
from stepline.sources.live.session import Session
from stepline.sources.load.level import LevelPlan
from tests.unit.live import hostile

PLAN = LevelPlan(concurrency=1, input_tokens=16, output_tokens=16, seconds=2.0)
TRACE = gzip.compress(b'{"traceEvents": []}')


def engine(root: object = "m", traces: object = None) -> dict[str, object]:
    """Routes of a vLLM server that says where its model and its traces lie."""
    return {
        "/v1/models": {"data": [{"id": "m", "root": str(root), "owned_by": "vllm"}]},
        "/version": {"version": "0.32.0"},
        "/server_info?config_format=json": {
            "vllm_config": {"profiler_config": {"torch_profiler_dir": traces and str(traces)}}
        },
    }


@contextmanager
def recording(server, folder):
    with Session(parse(f"http://127.0.0.1:{server.server_address[1]}"), folder) as session:
        yield session


@pytest.mark.parametrize(
    ("content", "kept"), [({"auths": {"hub": {"auth": "c2VjcmV0"}}}, False), ({"model_type": "llama"}, True)]
)
def test_only_a_models_config_is_kept(content, kept, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(content))
    with (
        hostile.serving(hostile.answering, engine(root=tmp_path)) as server,
        recording(server, tmp_path / "capture"),
    ):
        assert (tmp_path / "capture" / "config.json").exists() == kept


def profiling(on_start, on_stop=lambda: None):
    """Answers that log what was posted and act when the profiler is started and stopped."""
    posted = []

    def answer(handler) -> None:
        posted.append(handler.path)
        if handler.path == "/start_profile":
            on_start()
        elif handler.path == "/stop_profile":
            on_stop()
        else:
            hostile.answering(handler)
            return
        handler.reply(200, b"{}")

    return posted, answer


def test_a_trace_is_copied_and_no_link_is_followed(tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    (tmp_path / "private.json.gz").write_bytes(gzip.compress(b'{"traceEvents": ["private"]}'))

    def write() -> None:
        (folder / "rank0.json.gz").write_bytes(TRACE)
        (folder / "link.json.gz").symlink_to(tmp_path / "private.json.gz")

    _, answer = profiling(write)
    with (
        hostile.serving(answer, engine(traces=folder)) as server,
        recording(server, tmp_path / "capture") as session,
    ):
        kept = session.profile(PLAN, steps=8, step_ms=5.0)
    assert [path.read_bytes() for path in kept] == [TRACE]
    assert sorted(path.name for path in folder.iterdir()) == ["link.json.gz", "rank0.json.gz"]


def test_no_folder_is_made_where_the_server_says(tmp_path):
    posted, answer = profiling(lambda: None)
    with (
        hostile.serving(answer, engine(traces=tmp_path / "wherever")) as server,
        recording(server, tmp_path / "capture") as session,
    ):
        began = time.monotonic()
        assert session.profile(PLAN, steps=8, step_ms=5.0, longest_s=2.0) == []
    assert time.monotonic() - began < 10
    assert "/stop_profile" in posted
    assert not (tmp_path / "wherever").exists()


def test_a_profiler_is_stopped_after_ctrl_c(tmp_path):
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    posted, answer = profiling(timer.start)
    with (
        hostile.serving(answer, engine(traces=tmp_path)) as server,
        pytest.raises(KeyboardInterrupt),
        recording(server, tmp_path / "capture") as session,
    ):
        session.profile(PLAN, steps=1000, step_ms=10.0)
    assert posted[-1] == "/stop_profile"


def test_a_hanging_profiler_ends_in_time(tmp_path):
    _, answer = profiling(lambda: None, on_stop=lambda: time.sleep(30))
    with (
        hostile.serving(answer, engine(traces=tmp_path)) as server,
        recording(server, tmp_path / "capture") as session,
    ):
        began = time.monotonic()
        assert session.profile(PLAN, steps=8, step_ms=5.0, longest_s=3.0) == []
        assert time.monotonic() - began < 15


def test_a_tunnel_is_not_taken_for_the_server(tmp_path):
    """A process by a forwarder's name listens."""
    (tmp_path / "socat").symlink_to(os.path.realpath(sys.executable))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = f"import socket; s = socket.create_server(('127.0.0.1', {port})); s.accept()"
    with (tmp_path / "tunnel.log").open("wb") as log:
        tunnel = subprocess.Popen([tmp_path / "socat", "-c", code], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 10
        while (found := find_local(port)) is None and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        tunnel.kill()
        tunnel.wait()
    assert (found.forwards, found.log, found.folder) == ("socat", None, None)
