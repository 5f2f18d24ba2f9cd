"""What a decoder is made of, as far as bytes and FLOPs go: matrices, experts, caches and states."""

from typing import Literal

import msgspec

Component = Literal[
    "attention weights",
    "kv read",
    "indexer",
    "state",
    "moe experts",
    "shared expert",
    "dense ffn",
    "router and small",
    "head",
    "embedding",
]

ATTENTION_SIDE: frozenset[Component] = frozenset({"attention weights", "kv read", "indexer", "state"})
"""Components that attention data parallelism replicates instead of splitting."""


class Format(msgspec.Struct, frozen=True):
    """How a weight is stored and multiplied."""

    name: str
    bits: float
    """Stored bits per weight, scales included."""
    math: str
    """The narrowest type its matrix product can run in: bf16, fp8, fp4 or int8."""


BF16 = Format("bf16", 16, "bf16")
FP32 = Format("fp32", 32, "bf16")


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """One weight that every token passes, repeated over `layers` layers."""

    component: Component
    name: str
    params: float
    """Of one layer."""
    format: Format
    shards: int
    """The most ways tensor parallelism can divide it; 1 is replicated, KV heads bound the key projection."""
    gemm: bool = True
    """False for weights that are read but not multiplied as a matrix: norms, biases, lookups."""
    tied: bool = False
    """Shares its storage with another matrix: read, but neither counted nor stored twice."""
    layers: int = 1

    @property
    def total(self) -> float:
        """Parameters over all layers."""
        return self.params * self.layers


class Experts(msgspec.Struct, frozen=True, kw_only=True):
    """The routed experts of one mixture-of-experts layer, repeated over `layers` layers."""

    count: int
    top_k: int
    params: float
    """Of one expert."""
    matrices: int
    """Matrix products of one expert: 3 with a gate, 2 without."""
    format: Format
    layers: int = 1


class Cache(msgspec.Struct, frozen=True, kw_only=True):
    """Per-sequence entries written once and read by later steps, in each of `layers` layers."""

    component: Component
    name: str
    entry_bytes: tuple[tuple[str, float], ...]
    """Bytes of one entry by cache type; the first is what the model uses when nobody says."""
    flops: float
    """FLOPs per entry that one query token attends to."""
    shards: int
    """KV heads: the most ways tensor parallelism can divide it."""
    stride: float = 1
    """Tokens per entry."""
    read_cap: float | None = None
    """Entries one step reads at most (window or top-k)."""
    keep_cap: float | None = None
    """Entries kept at most (window)."""
    follows_capacity: bool = False
    """Known to cost by the configured context in some engines' kernels."""
    score_bytes: float = 0
    """Bytes per entry of scores written and read again when the work follows the configured context."""
    layers: int = 1

    def entries_read(self, context_tokens: float) -> float:
        """Entries one query reads in one layer at this context."""
        entries = context_tokens / self.stride
        return entries if self.read_cap is None else min(entries, self.read_cap)

    def entries_kept(self, context_tokens: float) -> float:
        """Entries one sequence occupies in one layer at this context."""
        entries = context_tokens / self.stride
        return entries if self.keep_cap is None else min(entries, self.keep_cap)


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Per-sequence memory of fixed size, in each of `layers` layers."""

    name: str
    resident_bytes: float
    step_bytes: float
    """Read and written in every step."""
    flops: float
    shards: int
    layers: int = 1


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """The layers that run together in one forward."""

    matrices: tuple[Matrix, ...] = ()
    experts: tuple[Experts, ...] = ()
    caches: tuple[Cache, ...] = ()
    states: tuple[State, ...] = ()

    @property
    def params(self) -> float:
        """Stored parameters, all experts included."""
        dense = sum(m.total for m in self.matrices if not m.tied)
        return dense + sum(e.params * e.count * e.layers for e in self.experts)

    @property
    def stored_bytes(self) -> float:
        """Bytes of all weights as stored, scales included."""
        dense = sum(m.total * m.format.bits / 8 for m in self.matrices if not m.tied)
        return dense + sum(e.params * e.count * e.layers * e.format.bits / 8 for e in self.experts)


class Architecture(msgspec.Struct, frozen=True, kw_only=True):
    """A decoder-only model, reduced to what its steps read and multiply."""

    name: str
    model_type: str
    hidden: int
    layers: int
    heads: int
    """Query heads: tensor parallelism must divide them."""
    vocab: int
    context_tokens: int | None
    """The longest context the model claims."""
    body: Block
    draft: Block | None = None
    """The model's own multi-token-prediction layers, read once per drafted token."""
    exact_bytes: float | None = None
    """Bytes of the weight files, where they were at hand."""
    kv_dtype: str = "auto"
    """The cache type the checkpoint asks for."""
    not_counted: tuple[str, ...] = ()
    """What this model has and the floors leave out; each lowers the floor."""

    @property
    def params(self) -> float:
        """All parameters without multi-token-prediction layers, as models are advertised."""
        return self.body.params

    @property
    def active_params(self) -> float:
        """Parameters one token passes, without the input embedding, with the head."""
        dense = sum(m.total for m in self.body.matrices if m.component != "embedding")
        return dense + sum(e.params * e.top_k * e.layers for e in self.body.experts)

    @property
    def checkpoint_bytes(self) -> float:
        """Bytes of the checkpoint, multi-token-prediction layers included."""
        if self.exact_bytes is not None:
            return self.exact_bytes
        return self.body.stored_bytes + (self.draft.stored_bytes if self.draft else 0.0)
