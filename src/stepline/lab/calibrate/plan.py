"""What a measurement is before it has run, and the sizes that decide what it means."""

from collections.abc import Callable
from typing import Any, NamedTuple

from stepline.evidence.calibration import Group

Body = Callable[[], Any]
"""Launches one operation; a plan gives several, on different buffers."""

L2_ROTATION = 4
"""A weight is read again only after this many times the L2 cache went through it."""


class Plan(NamedTuple):
    """One operation to time."""

    group: Group
    name: str
    dtype: str
    shape: dict[str, int]
    bytes: float
    flops: float
    bodies: Callable[[], list[Body]]
    """Makes the buffers when its turn comes; called once."""


class Product(NamedTuple):
    """A weight of a real layer: [n, k], as engines fuse them."""

    name: str
    n: int
    k: int


PRODUCTS = (
    Product("8B o", 4096, 4096),
    Product("8B qkv", 6144, 4096),
    Product("8B down", 4096, 14336),
    Product("8B gate_up", 28672, 4096),
    Product("8B head", 128256, 4096),
    Product("70B/8 o", 8192, 1024),
    Product("70B/8 qkv", 1280, 8192),
    Product("70B/8 gate_up", 7168, 8192),
    Product("70B qkv", 10240, 8192),
    Product("70B down", 8192, 28672),
)
"""Llama-3.1-8B and 70B whole, and 70B split eight ways: 21 MB to 1 GB in bf16."""

ROWS = (1, 8, 16, 32, 64)
"""Running batches whose weights are streamed; beyond them products turn compute-bound."""


def rotation(total_bytes: int, each_bytes: int, l2_bytes: int, *, most: int = 256) -> list[int]:
    """Offsets in bytes of the buffers of one size that a pool of `total_bytes` gives, one behind the other.

    Returns:
        At most `most` offsets; together they are larger than `L2_ROTATION` times the L2 cache, or there is none.
    """
    step = -(-each_bytes // 256) * 256
    count = min(total_bytes // step, most)
    return [index * step for index in range(count)] if count * step > L2_ROTATION * l2_bytes else []


def repeats(graph_ms: float, *, wanted_ms: float) -> int:
    """How often a graph is replayed so that a sample takes about `wanted_ms`."""
    return max(1, round(wanted_ms / max(graph_ms, 1e-3)))


def remark(error: BaseException) -> str:
    """One line about a failure, without addresses or paths."""
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}"[:200].rstrip(": ")
