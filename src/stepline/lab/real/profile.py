"""A short decode trace, taken under a load of its own so that it spoils no level."""

import asyncio
import gzip
import random
import time
from pathlib import Path
from typing import Any

from stepline.lab.real import http
from stepline.lab.real.load import prompt
from stepline.lab.real.matrix import Level, Profile

_PREROLL_S = 2.0  # long enough for the prompts to pass and for a few decode windows in the log
_WAIT_S = 30.0  # a trace without Python stacks was written within 5 s; the eager ones are the longest


async def _hold(port: int, body: dict[str, Any]) -> None:
    async for _ in http.generate(port, body):
        pass


async def take_trace(
    port: int, profile: Profile, like: Level, folder: Path, *, vocab: int
) -> tuple[Path | None, float, float]:
    """Trace `profile.steps` decode steps of prompts like `like` has, with shapes, without Python stacks.

    Returns:
        The trace under `folder` (None where none was complete in time), and Unix times of load start and end.
    """
    rng = random.Random(-1)  # noqa: S311 - load, not cryptography
    sampling = {"max_new_tokens": 2048, "ignore_eos": True, "temperature": like.temperature}
    start = time.time()
    holds = [
        asyncio.create_task(
            _hold(
                port,
                {
                    "input_ids": prompt(rng, like.input_tokens, 0, vocab),
                    "sampling_params": sampling,
                    "stream": True,
                },
            )
        )
        for _ in range(profile.concurrency)
    ]
    await asyncio.sleep(_PREROLL_S)
    ask = {"output_dir": str(folder), "num_steps": profile.steps, "activities": ["CPU", "GPU"]}
    await http.call(port, "/start_profile", ask | {"with_stack": False, "record_shapes": True})
    deadline, found = time.time() + _WAIT_S, None
    while found is None and time.time() < deadline:
        await asyncio.sleep(0.5)
        found = next((p for p in sorted(folder.glob("*.trace.json.gz")) if _whole(p)), None)
    for hold in holds:
        hold.cancel()
    await asyncio.gather(*holds, return_exceptions=True)
    return found, start, time.time()


def _whole(path: Path) -> bool:
    try:
        with gzip.open(path) as f:
            while f.read(2**20):
                pass
    except (OSError, EOFError):
        return False
    return True
