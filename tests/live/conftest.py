"""A real engine: vLLM on the CPU with random weights, as `scripts/live-engine` installs it; skipped where it is not."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepline.lab.real.engine import write_model
from stepline.sources.address import parse
from stepline.sources.http import Http, Unreachable

ROOT = Path(__file__).parents[2]
VLLM = ROOT / ".venv-live" / "bin" / "vllm"
MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 2048,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "torch_dtype": "float32",
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
READY_S = 240
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_SERVER_DEV_MODE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
}
CORES = sorted(os.sched_getaffinity(0))
SERVER_CORES, CLIENT_CORES = (CORES[:-1] or CORES), CORES[-1:]
"""The engine's threads spin while they wait: on shared cores they would make the client late, and it would say so."""


def on(cores: list[int]) -> list[str]:
    """The opening of a command that may use these cores only."""
    return ["taskset", "-c", ",".join(map(str, cores))]


class Served:
    """One engine process, its URL and its log."""

    def __init__(self, folder: Path, *flags: str) -> None:
        write_model(folder / "model", MODEL)
        self.port, self.log, self.traces = _free_port(), folder / "server.log", folder / "traces"
        profiler = (
            f'{{"profiler":"torch","torch_profiler_dir":"{self.traces}","torch_profiler_with_stack":false}}'
        )
        self.command = [
            *on(SERVER_CORES),
            str(VLLM),
            "serve",
            "model",
            "--load-format",
            "dummy",
            "--max-model-len",
            "2048",
            "--enforce-eager",
        ]
        self.command += ["--dtype", "float32", "--port", str(self.port), "--profiler-config", profiler]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*self.command, *flags],
                cwd=folder,
                env=os.environ | ENVIRONMENT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def wait_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                if Http(parse(self.url)).get("/health", timeout_s=2).ok:
                    return
            except Unreachable:
                time.sleep(0.5)
        raise AssertionError(self.log.read_text(errors="replace")[-3000:])

    def stop(self) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.process.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With its defaults."""
    yield from _served(tmp_path_factory.mktemp("engine"))


@pytest.fixture(scope="session")
def capped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Runs four requests at most."""
    yield from _served(tmp_path_factory.mktemp("capped"), "--max-num-seqs", "4")


def _served(folder: Path, *flags: str) -> Iterator[Served]:
    if not VLLM.exists():
        pytest.skip("no engine here: scripts/live-engine installs one")
    served = Served(folder, *flags)
    try:
        served.wait_ready()
        yield served
    finally:
        served.stop()
