"""How a simulated engine is configured: all that its own surfaces may tell about it."""

import msgspec

GRAPH_SIZES = (1, 2, 4, 8, 12, *range(16, 257, 8))
"""Decode graphs that SGLang 0.5.16 captures on a GPU of 60 to 160 GB."""


class Speculation(msgspec.Struct, frozen=True, kw_only=True):
    """A draft method and how often its tokens are right."""

    algorithm: str
    draft_tokens: int
    """Tokens verified per request and step, the bonus included."""
    accept_chance: float
    """That one more draft is accepted, given that all before it were."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Resolved settings of one start."""

    engine: str
    version: str
    model: str
    gpu: str
    tp: int = 1
    context_length: int
    max_running: int
    max_running_asked: int | None = None
    kv_tokens: int
    kv_tokens_asked: int | None = None
    graph_sizes: tuple[int, ...] = GRAPH_SIZES
    """Empty: decode graphs are off."""
    prefill_graphs: bool = True
    chunk_tokens: int = 8192
    max_prefill_tokens: int = 16384
    overlap: bool = True
    prefix_cache: bool = True
    conservativeness: float = 1.0
    ratio_decay_steps: int = 600
    log_interval: int = 40
    attention_backend: str = "fa3"
    kv_splits: int | None = None
    """Blocks per KV head and request in decode attention; None: as many as fill the GPU."""
    speculation: Speculation | None = None
    memory_share: float = 0.88
    remarks: tuple[str, ...] = ()
    """Extra start-up lines, as the engine would print them."""
