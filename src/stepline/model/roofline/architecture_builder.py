"""Collects the parts of a model layer by layer and joins equal ones."""

from collections import Counter
from typing import TypeVar

import msgspec

from stepline.model.roofline.architecture_config import Config
from stepline.model.roofline.architecture_parts import Block, Cache, Component, Experts, Format, Matrix, State
from stepline.model.roofline.quantisation import Quantisation

Part = TypeVar("Part", Matrix, Experts, Cache, State)

KV_TYPES = {"bf16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5625}
"""Bytes of one cached element; fp4 carries one scale byte per 16 elements."""


class Builder:
    """Gathers matrices, experts, caches and states of one block.

    `layer` is the index that module names carry; families set nothing else.
    """

    def __init__(self, config: Config, quantisation: Quantisation) -> None:
        self.config = config
        self.quantisation = quantisation
        self.layer = 0
        self.not_counted: list[str] = []
        self._matrices: Counter[Matrix] = Counter()
        self._experts: Counter[Experts] = Counter()
        self._caches: Counter[Cache] = Counter()
        self._states: Counter[State] = Counter()

    def linear(self, component: Component, path: str, rows: int, columns: int, *, shards: int) -> None:
        """Add a linear layer `path` ("self_attn.q_proj") that the checkpoint's quantisation may cover."""
        fmt = self.quantisation.of(f"layers.{self.layer}.{path}")
        self.matrix(component, path, rows * columns, fmt=fmt, shards=shards)

    def matrix(
        self,
        component: Component,
        name: str,
        params: float,
        *,
        fmt: Format | None = None,
        shards: int = 1,
        gemm: bool = True,
        tied: bool = False,
    ) -> None:
        """Add a weight in a format of its own; without one it stays in the checkpoint's plain type."""
        if params:
            self._matrices[
                Matrix(
                    component=component,
                    name=name,
                    params=params,
                    format=fmt or self.quantisation.plain,
                    shards=shards,
                    gemm=gemm,
                    tied=tied,
                )
            ] += 1

    def experts(
        self, path: str, *, count: int, top_k: int, rows: int, columns: int, matrices: int = 3
    ) -> None:
        """Add routed experts of `matrices` products of `rows` by `columns` each."""
        fmt = self.quantisation.of(f"layers.{self.layer}.{path}.0.up_proj", expert=True)
        self._experts[
            Experts(count=count, top_k=top_k, params=matrices * rows * columns, matrices=matrices, format=fmt)
        ] += 1

    def cache(self, cache: Cache) -> None:
        """Add a per-sequence cache of one layer."""
        self._caches[cache] += 1

    def state(self, state: State) -> None:
        """Add a per-sequence state of one layer."""
        self._states[state] += 1

    def kv(
        self,
        *,
        name: str,
        elements: int,
        flops: float,
        shards: int,
        window: int | None = None,
        read_cap: int | None = None,
        extra: tuple[tuple[str, float], ...] = (),
    ) -> None:
        """Add a key and value cache of `elements` numbers per token; a window bounds reads and keeping."""
        entry_bytes = (*((dtype, elements * width) for dtype, width in KV_TYPES.items()), *extra)
        self.cache(
            Cache(
                component="kv read",
                name=name,
                entry_bytes=entry_bytes,
                flops=flops,
                shards=shards,
                read_cap=window if window is not None else read_cap,
                keep_cap=window,
            )
        )

    def block(self) -> Block:
        """Return what was gathered, equal layers joined."""
        return Block(
            matrices=_joined(self._matrices),
            experts=_joined(self._experts),
            caches=_joined(self._caches),
            states=_joined(self._states),
        )


def _joined(parts: Counter[Part]) -> tuple[Part, ...]:
    return tuple(msgspec.structs.replace(part, layers=count) for part, count in parts.items())
