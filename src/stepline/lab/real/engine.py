"""Start, await and stop one SGLang server (0.5.x) with random weights of a given shape."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from stepline.errors import SteplineError
from stepline.lab.real.matrix import Case

LAUNCH = ("python3", "-m", "sglang.launch_server")
_READY = (
    "The server is fired up and ready to roll!"  # logged by entrypoints/http_server.py once it takes requests
)
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class EngineFailed(SteplineError):
    """The engine ended or did not become ready; the message names its log."""


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


class Engine:
    """One server process in a process group of its own, with its log in a file."""

    def __init__(self, case: Case, port: int, work: Path) -> None:
        """Start it in `work`, where the model is `models/<name>`; returns at once."""
        self.port, self.log = port, work / f"{case.name}.log"
        command = [*LAUNCH, "--model-path", f"models/{case.model}", "--port", str(port), *case.flags]
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
        """Block until the log says that requests are taken.

        Raises:
            EngineFailed: the process ended, or `timeout_s` passed.
        """
        deadline = time.monotonic() + timeout_s
        while _READY not in self.log.read_text(errors="replace"):
            if self._process.poll() is not None:
                raise EngineFailed(
                    f"{self.log}: the engine ended with {self._process.returncode} before it was ready"
                )
            if time.monotonic() > deadline:
                raise EngineFailed(f"{self.log}: the engine was not ready within {timeout_s:.0f} s")
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
