"""A made-up calibration whose kernels take exactly what a line says, so that sums can be checked by hand."""

from stepline.evidence.calibration import ENGINE_ATTENTION, STACK_PARTS, Calibration, Group, Machine, Measured

ROWS = (1, 8, 64)
START_MS = 0.004
BYTES_S = {"bf16": 4e12, "fp8": 3e12}
ATTENTION_START_MS, ATTENTION_BYTES_S = 0.010, 2e12
SMALL_MS, ARGMAX_MS = 0.002, 0.020
FOLLOWING_MS = 0.001
PEAK = {"bf16": 8e14, "fp8": 1.4e15}
ALL_REDUCE_MS = {2: 0.010, 4: 0.012}
WEIGHTS = {
    "8B qkv": (6144, 4096),
    "8B o": (4096, 4096),
    "8B gate_up": (28672, 4096),
    "8B down": (4096, 14336),
}
KERNELS_PER_LAYER = 14


def measured(group: Group, name: str, ms: float, *, moved: float = 0, dtype: str = "", flops: float = 0,
             **shape: int) -> Measured:  # fmt: skip
    return Measured(
        group=group, name=name, dtype=dtype, shape=shape, method="graph", ms=ms, low_ms=ms, high_ms=ms,
        samples=5, bytes=moved, flops=flops,
    )  # fmt: skip


def calibration(gpu: str = "NVIDIA H200", *, without: tuple[str, ...] = ()) -> Calibration:
    """Every group, or all but some; at 64 rows products start twice as slowly, so that interpolation shows."""
    each: list[Measured] = []
    for rows in ROWS:
        each += [*_products(rows), *_attention(rows), *_kernels(rows), _stack(rows)]
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


def _product_ms(rows: int, weight_bytes: float, dtype: str = "bf16") -> float:
    return START_MS * (2 if rows == 64 else 1) + weight_bytes / BYTES_S[dtype] * 1e3


def _products(rows: int) -> list[Measured]:
    return [
        measured(
            "stream", name, _product_ms(rows, n * k * size, dtype), moved=1.05 * n * k * size, dtype=dtype,
            rows=rows, n=n, k=k,
        )
        for name, (n, k) in WEIGHTS.items()
        for dtype, size in (("bf16", 2), ("fp8", 1))
    ]  # fmt: skip


def _attention_ms(rows: int, tokens: int) -> float:
    return ATTENTION_START_MS + rows * tokens * 4096 / ATTENTION_BYTES_S * 1e3


def _attention(rows: int) -> list[Measured]:
    """The backend that counts and a quicker one that does not."""
    return [
        measured("attention", name, share * _attention_ms(rows, tokens), moved=rows * tokens * 4096,
                 dtype="bf16", rows=rows, tokens=tokens)
        for tokens in (512, 8192)
        for name, share in ((ENGINE_ATTENTION, 1.0), ("cudnn_attention", 0.5))
    ]  # fmt: skip


def _kernels(rows: int) -> list[Measured]:
    small = [measured("kernel", name, SMALL_MS, rows=rows) for name in ("norm", "add", "silu", "cache write")]
    return [*small, measured("kernel", "argmax over the vocabulary", ARGMAX_MS, rows=rows)]


def _stack(rows: int) -> Measured:
    weights = sum(_product_ms(rows, n * k * 2) for n, k in WEIGHTS.values())
    small = SMALL_MS * sum(count for group, _, count in STACK_PARTS if group == "kernel")
    layer = weights + _attention_ms(rows, 512) + small + KERNELS_PER_LAYER * FOLLOWING_MS
    return measured("stack", "8B layers", 8 * layer, dtype="bf16", rows=rows, tokens=512, layers=8)
