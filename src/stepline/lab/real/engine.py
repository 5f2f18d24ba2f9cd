"""Start, await and stop one server with random weights of a given shape: SGLang (0.5.x) or vLLM (0.24)."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from stepline.lab.real.matrix import Case

LAUNCH = {
    "sglang": ("python3", "-m", "sglang.launch_server", "--model-path"),
    "vllm": ("python3", "-m", "vllm.entrypoints.cli.main", "serve"),
}
"""Up to the model's folder."""
_READY = {
    "sglang": "The server is fired up and ready to roll!",  # entrypoints/http_server.py, once it takes requests
    "vllm": "Application startup complete.",  # uvicorn, which vLLM starts when its engine is ready
}
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def write_model(folder: Path, config: dict[str, Any]) -> None:
    """Write `config.json` and a tokenizer whose every id decodes to a short word.

    With gaps in it the engine's detokenizer would work through ever longer texts, a fault of its own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    vocab = {_word(i): i for i in range(config["vocab_size"])}
    model = {"type": "WordLevel", "vocab": vocab, "unk_token": _word(0)}
    empty = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
    split = {"type": "WhitespaceSplit"}
    whole: dict[str, Any] = {
        "version": "1.0",
        **empty,
        "added_tokens": [],
        "pre_tokenizer": split,
        "model": model,
    }
    (folder / "tokenizer.json").write_text(json.dumps(whole))
    tokens = {"bos_token": _word(0), "eos_token": _word(1), "unk_token": _word(0)}
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **tokens})
    )


def _word(i: int) -> str:
    word = _DIGITS[i % 36]
    while i := i // 36:
        word = _DIGITS[i % 36] + word
    return word


def _on(cores: int | None) -> list[str]:
    """The opening of a command whose processes share so many of this machine's cores."""
    if cores is None:
        return []
    allowed = sorted(os.sched_getaffinity(0))[:cores] if sys.platform == "linux" else []
    return ["taskset", "-c", ",".join(map(str, allowed))] if allowed else []


class Engine:
    """One server process in a process group of its own, with its log in a file."""

    def __init__(self, kind: str, case: Case, port: int, work: Path) -> None:
        """Start it in `work`, where the model is `models/<name>`; returns at once."""
        self.url, self.log = f"http://127.0.0.1:{port}", work / f"{case.name}.log"
        self.failed: str | None = None
        """Why it takes no requests."""
        self._ready = _READY[kind]
        traces = work / "traces" / case.name
        traces.mkdir(parents=True)
        flags = [flag.replace("{traces}", str(traces)) for flag in case.flags]
        command = [*_on(case.cores), *LAUNCH[kind], f"models/{case.model}", "--port", str(port), *flags]
        with self.log.open("wb") as out:
            self._process = subprocess.Popen(  # noqa: S603 - the command is the matrix file's own
                command,
                cwd=work,
                env=os.environ | case.environment,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def wait_ready(self, timeout_s: float) -> None:
        """Block until the log says that requests are taken, or `failed` says why that will not come."""
        deadline = time.monotonic() + timeout_s
        while self._ready not in self.log.read_text(errors="replace"):
            if self._process.poll() is not None:
                self.failed = f"the engine ended with {self._process.returncode} before it was ready"
                return
            if time.monotonic() > deadline:
                self.failed = f"the engine was not ready within {timeout_s:.0f} s"
                return
            time.sleep(0.2)

    def stop(self, grace_s: float = 10.0) -> None:
        """Ask the group to end, then kill what is left of it after `grace_s`."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM if grace_s else signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s or 10.0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
