"""Plans of bulk bandwidth and of matrix products: large ones for the peak, small batches for weight streaming."""

import functools
from collections.abc import Iterator
from typing import Any

from stepline.evidence.calibration import Group
from stepline.lab.calibrate.plan import PRODUCTS, ROWS, Body, Plan, Product, rotation

PEAKS = ((8192, Product("square", 8192, 8192)), (4096, Product("70B/2 gate_up", 28672, 8192)))
"""Rows and weight: a square, and a wide product of a 70B layer for a long prompt."""
FP8 = (8, 9)
"""Compute capability from which tensor cores multiply fp8."""


class Pool:
    """One large allocation of random numbers that all plans take their buffers from."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        properties = torch.cuda.get_device_properties(0)
        self.l2_bytes = int(properties.L2_cache_size)
        free, _ = torch.cuda.mem_get_info()
        self.bytes = int(min(4 << 30, free // 4)) // 4096 * 4096

    @functools.cached_property
    def bf16(self) -> Any:
        """All of it as bf16, standard normal."""
        return self.torch.empty(self.bytes // 2, dtype=self.torch.bfloat16, device="cuda").normal_()

    @functools.cached_property
    def fp8(self) -> Any:
        """Half as many bytes as fp8 (e4m3)."""
        return self.bf16[: self.bytes // 2].to(self.torch.float8_e4m3fn)

    def matrices(self, dtype: str, n: int, k: int) -> list[Any]:
        """Different [n, k] matrices, together larger than the L2 cache.

        Raises:
            ValueError: the pool is too small for that.
        """
        flat, size = (self.bf16, 2) if dtype == "bf16" else (self.fp8, 1)
        offsets = rotation(flat.numel() * size, n * k * size, self.l2_bytes)
        if not offsets:
            raise ValueError(f"too little free memory for rotating [{n}, {k}] weights in {dtype}")
        return [flat[at // size : at // size + n * k].view(n, k) for at in offsets]


def bandwidth(pool: Pool) -> Iterator[Plan]:
    """A copy (read and written bytes counted), a read that keeps nothing, and a fill."""
    half = pool.bytes // 2

    def two() -> tuple[Any, Any]:
        flat = pool.bf16
        return flat[: half // 2], flat[half // 2 :]

    def copy() -> list[Body]:
        first, second = two()
        return [lambda: second.copy_(first)]

    def read(name: str) -> list[Body]:
        first = two()[0].view(pool.torch.float32)
        return [lambda: getattr(pool.torch, name)(first)]

    def fill() -> list[Body]:
        target = pool.torch.empty(half, dtype=pool.torch.uint8, device="cuda")
        return [lambda: target.fill_(1)]

    shape = {"bytes": half}
    yield Plan("bandwidth", "copy", "bf16", shape, 2 * half, 0, copy)
    yield Plan("bandwidth", "read (maximum)", "fp32", shape, half, 0, lambda: read("amax"))
    yield Plan("bandwidth", "read (sum)", "fp32", shape, half, 0, lambda: read("sum"))
    yield Plan("bandwidth", "fill", "uint8", shape, half, 0, fill)


def peaks(pool: Pool) -> Iterator[Plan]:
    """Products large enough to be bound by the tensor cores, on random numbers."""
    for rows, product in PEAKS:
        for dtype in ("bf16", "fp8"):
            yield _plan(pool, "peak", product, dtype, rows)
    size = 4096
    shape = {"rows": size, "n": size, "k": size}
    for dtype in ("tf32", "fp32"):
        make = functools.partial(_single, pool, size, tf32=dtype == "tf32")
        yield Plan("peak", "square", dtype, shape, 0, 2.0 * size**3, make)


def streams(pool: Pool) -> Iterator[Plan]:
    """Every weight of `PRODUCTS` read by every batch of `ROWS`."""
    for dtype in ("bf16", "fp8"):
        for rows in ROWS:
            for product in PRODUCTS:
                yield _plan(pool, "stream", product, dtype, rows)


def _plan(pool: Pool, group: Group, product: Product, dtype: str, rows: int) -> Plan:
    n, k, size = product.n, product.k, 2 if dtype == "bf16" else 1
    moved = n * k * size + rows * k * size + rows * n * 2
    make = functools.partial(_bf16 if dtype == "bf16" else _fp8, pool, rows, n, k)
    shape = {"rows": rows, "n": n, "k": k}
    return Plan(group, product.name, dtype, shape, moved, 2.0 * rows * n * k, make)


def _bf16(pool: Pool, rows: int, n: int, k: int) -> list[Body]:
    torch = pool.torch
    left = torch.randn(rows, k, dtype=torch.bfloat16, device="cuda")
    out = torch.empty(rows, n, dtype=torch.bfloat16, device="cuda")
    return [functools.partial(torch.mm, left, weight.t(), out=out) for weight in pool.matrices("bf16", n, k)]


def _fp8(pool: Pool, rows: int, n: int, k: int) -> list[Body]:
    torch = pool.torch
    if torch.cuda.get_device_capability() < FP8:
        raise ValueError("this GPU's tensor cores do not multiply fp8")
    left = torch.randn(rows, k, dtype=torch.bfloat16, device="cuda").to(torch.float8_e4m3fn)
    one = torch.ones((), dtype=torch.float32, device="cuda")
    return [
        functools.partial(
            torch._scaled_mm,  # torch has no other name for it
            left,
            weight.t(),
            scale_a=one,
            scale_b=one,
            out_dtype=torch.bfloat16,
            use_fast_accum=True,
        )
        for weight in pool.matrices("fp8", n, k)
    ]


def _single(pool: Pool, size: int, *, tf32: bool) -> list[Body]:
    torch = pool.torch
    left, right, out = (torch.randn(size, size, device="cuda") for _ in range(3))

    def multiply() -> None:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.mm(left, right, out=out)

    return [multiply]
