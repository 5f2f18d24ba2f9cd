"""A made-up calibration whose kernels take exactly what a line says, so that sums can be checked by hand."""

from stepline.evidence.calibration import Calibration, Group, Machine, Measured

ROWS = (1, 8, 64)
START_MS = 0.004
BYTES_S = {"bf16": 4e12, "fp8": 3e12}
ATTENTION_START_MS, ATTENTION_BYTES_S = 0.010, 2e12
SMALL_MS, ARGMAX_MS = 0.002, 0.020
PEAK = {"bf16": 8e14, "fp8": 1.4e15}
ALL_REDUCE_MS = {2: 0.010, 4: 0.012}


def measured(group: Group, name: str, ms: float, *, moved: float = 0, dtype: str = "", flops: float = 0,
             **shape: int) -> Measured:  # fmt: skip
    return Measured(
        group=group, name=name, dtype=dtype, shape=shape, method="graph", ms=ms, low_ms=ms, high_ms=ms,
        samples=5, bytes=moved, flops=flops,
    )  # fmt: skip


def calibration(gpu: str = "NVIDIA H200", *, without: tuple[str, ...] = ()) -> Calibration:
    """Every group, or all but some; one batch doubles the starts of products so that interpolation shows."""
    each: list[Measured] = []
    for rows in ROWS:
        for size in (20e6, 100e6, 500e6):
            for dtype, rate in BYTES_S.items():
                start = START_MS * (2 if rows == 64 else 1)
                shape = {"rows": rows, "n": int(size / 4000), "k": 2000 if dtype == "bf16" else 4000}
                ms = start + size / rate * 1e3
                each.append(measured("stream", "weight", ms, moved=1.05 * size, dtype=dtype, **shape))
            line = ATTENTION_START_MS + size / ATTENTION_BYTES_S * 1e3
            for name, slower in (("quick", 1.0), ("slow", 1.5)):
                each.append(
                    measured("attention", name, slower * line, moved=size, rows=rows, tokens=int(size / 1e6))
                )
        names = ("norm", "add", "silu", "cache write")
        each += [measured("kernel", name, SMALL_MS, rows=rows) for name in names]
        each.append(measured("kernel", "argmax over the vocabulary", ARGMAX_MS, rows=rows))
    for dtype, peak in PEAK.items():
        each.append(measured("peak", "square", 1e12 / peak * 1e3, dtype=dtype, flops=1e12))
    for gpus, ms in ALL_REDUCE_MS.items():
        sizes = (8192, 4 << 20)
        each += [measured("allreduce", "all-reduce", ms, moved=n, bytes=n, gpus=gpus) for n in sizes]
    return Calibration(
        stepline="0",
        date="2026-11-30",
        seconds=20,
        machine=Machine(
            gpu=gpu, gpus=1, l2_bytes=60 << 20, sms=132, driver="1", cuda="13.0", torch="2.11.0", nccl="2",
            python="3.12",
        ),
        measured=tuple(one for one in each if one.group not in without),
    )  # fmt: skip
