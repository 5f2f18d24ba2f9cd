"""All-reduce over the GPUs present: NCCL by torch.distributed, one process a GPU, in CUDA graphs."""

import functools
import importlib
import multiprocessing
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from stepline.evidence.calibration import Measured, NotMeasured
from stepline.lab.calibrate.clock import GpuClock
from stepline.lab.calibrate.conditions import Driver
from stepline.lab.calibrate.plan import remark

SIZES = (8 << 10, 32 << 10, 128 << 10, 512 << 10, 4 << 20, 64 << 20)
"""Bytes: a token of a small model up to the activations of a long prompt."""
NAME = "all-reduce"


def all_reduce(gpus: int, timeout_s: float) -> tuple[list[Measured], list[NotMeasured]]:
    """Measure every size over all GPUs; a reason instead where there is one GPU or the ranks do not come together."""
    if gpus < 2:
        return [], [NotMeasured(group="allreduce", name=NAME, reason="one GPU has nobody to reduce with")]
    with tempfile.TemporaryDirectory() as folder:
        spawn = multiprocessing.get_context("spawn")
        ranks = [spawn.Process(target=_rank, args=(rank, gpus, folder), daemon=True) for rank in range(gpus)]
        for process in ranks:
            process.start()
        end = time.monotonic() + timeout_s
        for process in ranks:
            process.join(max(0.0, end - time.monotonic()))
        late = [process for process in ranks if process.is_alive()]
        for process in late:
            process.kill()
        told = [file.read_text() for file in sorted(Path(folder).glob("failed-*"))]
        result = Path(folder, "measured.json")
        if result.is_file():
            return msgspec.json.decode(result.read_bytes(), type=list[Measured]), []
        reason = told[0] if told else f"{len(late)} of {gpus} ranks did not end within {timeout_s:.0f} s"
        return [], [NotMeasured(group="allreduce", name=NAME, reason=reason)]


def _rank(rank: int, gpus: int, folder: str) -> None:
    """One process; rank 0 leaves the figures, a failure its reason."""
    try:
        measured = _measure(importlib.import_module("torch"), rank, gpus, folder)
    except Exception as error:
        Path(folder, f"failed-{rank}").write_text(f"rank {rank}: {remark(error)}")
        return
    if rank == 0:
        part = Path(folder, "measured.part")
        part.write_bytes(msgspec.json.encode(measured))
        part.rename(Path(folder, "measured.json"))


def _measure(torch: Any, rank: int, gpus: int, folder: str) -> list[Measured]:
    distributed = importlib.import_module("torch.distributed")
    torch.cuda.set_device(rank)
    device = torch.device("cuda", rank)
    distributed.init_process_group(
        "nccl", init_method=f"file://{folder}/store", rank=rank, world_size=gpus, device_id=device
    )
    clock, measured = GpuClock(torch, Driver(None)), []
    with torch.cuda.stream(torch.cuda.Stream()):
        for size in SIZES:
            buffer = torch.zeros(size // 2, dtype=torch.bfloat16, device=device)
            body = functools.partial(distributed.all_reduce, buffer)
            # Every rank must replay equally often, so the number follows from the size, not from a rough timing.
            timed = clock.fixed([body] * 20, replays=max(2, 40 >> (size >> 20).bit_length()))
            measured.append(
                Measured(
                    group="allreduce",
                    name=NAME,
                    dtype="bf16",
                    shape={"bytes": size, "gpus": gpus},
                    method="graph",
                    bytes=size,
                    **timed.summary,
                )
            )
    distributed.destroy_process_group()
    return measured
