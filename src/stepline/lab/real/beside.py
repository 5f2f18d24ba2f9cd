"""What else goes on while a case is recorded: another client's prompts, or another process on the GPU."""

import contextlib
import json
import random
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from stepline.lab.real.matrix import Traffic

_FIRST_ID = 16
"""Ids below are often special: beginning, end, padding."""
_MOST_AT_ONCE = 256
"""Requests of the other client that may wait for their answers at a time."""


@contextlib.contextmanager
def traffic(url: str, model: str, vocabulary: int, load: Traffic) -> Iterator[None]:
    """Post a prompt of random ids to the server's `/v1/completions` every `load.every_s` until the block ends.

    A request that the server refuses or breaks off is not repeated, and those under way are left alone.
    """
    draw, stop = random.Random(0), threading.Event()  # noqa: S311 - a load

    def post() -> None:
        prompt = draw.choices(range(_FIRST_ID, vocabulary), k=load.input_tokens)
        body = {"model": model, "prompt": prompt, "max_tokens": load.output_tokens, "ignore_eos": True}
        body |= load.sampling
        ask = urllib.request.Request(  # noqa: S310 - the URL of the engine that this lab started
            f"{url}/v1/completions", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with contextlib.suppress(OSError), urllib.request.urlopen(ask, timeout=120) as answer:  # noqa: S310
            answer.read()

    def keep_on() -> None:
        while not stop.wait(load.every_s):
            pool.submit(post)

    pool = ThreadPoolExecutor(_MOST_AT_ONCE, "beside")
    clock = threading.Thread(target=keep_on, name="beside", daemon=True)
    clock.start()
    try:
        yield
    finally:
        stop.set()
        clock.join()
        pool.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def neighbour(code: str) -> Iterator[None]:
    """Run Python in a process of its own, from its first printed line until the block ends."""
    command = (sys.executable, "-c", code)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 - the matrix file's own
        try:
            if process.stdout is not None:
                process.stdout.readline()  # imports and the first kernel take seconds
            yield
        finally:
            process.kill()
