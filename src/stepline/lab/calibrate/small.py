"""Plans of what runs beside matrix products: small kernels, decode attention, launches, and whole layers."""

import functools
from collections.abc import Iterator
from typing import Any

from stepline.lab.calibrate.bulk import Pool
from stepline.lab.calibrate.plan import PRODUCTS, ROWS, Body, Plan, rotation

HIDDEN, HEADS, KV_HEADS, HEAD, WIDE, VOCAB = 4096, 32, 8, 128, 14336, 128256
"""Llama-3.1-8B: hidden size, query and KV heads, their size, feed-forward width, vocabulary."""
CONTEXTS = (512, 2048, 8192)
STACK_LAYERS = 8
NODES = 400
"""Small kernels of one graph: a millisecond or so."""


def kernels(pool: Pool) -> Iterator[Plan]:
    """Kernels that every layer or step has, on activations that stay in the L2 cache as they do in a step."""
    yield _small("add of one value", 1, lambda: _add(pool, 1, 1), NODES)
    for rows in ROWS:
        yield _small("add", rows, functools.partial(_add, pool, rows, HIDDEN), NODES)
        yield _small("norm", rows, functools.partial(_norm, pool, rows), NODES)
        yield _small("silu", rows, functools.partial(_silu, pool, rows), NODES)
        yield _small("cache write", rows, functools.partial(_write, pool, rows), NODES)
        yield _small("argmax over the vocabulary", rows, functools.partial(_argmax, pool, rows), NODES // 8)


def _small(name: str, rows: int, body: Any, nodes: int) -> Plan:
    return Plan("kernel", name, "", {"rows": rows}, 0, 0, lambda: [body()] * nodes)


def _rows(pool: Pool, rows: int, width: int) -> Any:
    return pool.torch.randn(rows, width, dtype=pool.torch.bfloat16, device="cuda")


def _add(pool: Pool, rows: int, width: int) -> Body:
    left, right, out = (_rows(pool, rows, width) for _ in range(3))
    return functools.partial(pool.torch.add, left, right, out=out)


def _norm(pool: Pool, rows: int) -> Body:
    return functools.partial(pool.torch.nn.functional.layer_norm, _rows(pool, rows, HIDDEN), (HIDDEN,))


def _silu(pool: Pool, rows: int) -> Body:
    return functools.partial(pool.torch.nn.functional.silu, _rows(pool, rows, WIDE))


def _write(pool: Pool, rows: int) -> Body:
    cache, new = _rows(pool, 4096, KV_HEADS * HEAD), _rows(pool, rows, KV_HEADS * HEAD)
    slots = pool.torch.arange(rows, device="cuda") * 61
    return functools.partial(cache.index_copy_, 0, slots, new)


def _argmax(pool: Pool, rows: int) -> Body:
    logits = pool.torch.randn(rows, VOCAB, device="cuda")
    return functools.partial(pool.torch.argmax, logits, dim=-1)


def attention(pool: Pool, backend: str) -> Iterator[Plan]:
    """Decode attention of one query token a row, 32 query and 8 KV heads of 128, by one of torch's backends."""
    for tokens in CONTEXTS:
        for rows in ROWS:
            entries = 2 * rows * tokens * KV_HEADS * HEAD * 2
            if 2 * entries > pool.bytes:
                continue
            make = functools.partial(_attention, pool, backend, rows, tokens)
            flops = 4.0 * rows * tokens * HEADS * HEAD
            shape = {"rows": rows, "tokens": tokens}
            yield Plan("attention", backend.lower(), "bf16", shape, entries, flops, make)


def _caches(pool: Pool, rows: int, tokens: int) -> list[tuple[Any, Any]]:
    """Different pairs of cached keys and values, each [rows, KV heads, tokens, head]."""
    each = rows * KV_HEADS * tokens * HEAD
    shape = (rows, KV_HEADS, tokens, HEAD)
    offsets = rotation(pool.bytes, 4 * each, pool.l2_bytes, most=NODES)
    if not offsets:
        raise ValueError("too little free memory for rotating caches")
    flat = pool.bf16
    return [
        (flat[at // 2 : at // 2 + each].view(shape), flat[at // 2 + each : at // 2 + 2 * each].view(shape))
        for at in offsets
    ]


def _attention(pool: Pool, backend: str, rows: int, tokens: int) -> list[Body]:
    torch = pool.torch
    query = torch.randn(rows, HEADS, 1, HEAD, dtype=torch.bfloat16, device="cuda")
    return [attend(pool, backend, query, *pair) for pair in _caches(pool, rows, tokens)]


def attend(pool: Pool, backend: str, query: Any, keys: Any, values: Any) -> Body:
    """One attention over a cache by the named backend alone."""
    nn = pool.torch.nn
    chosen = getattr(nn.attention.SDPBackend, backend)

    def run() -> Any:
        with nn.attention.sdpa_kernel(chosen):
            return nn.functional.scaled_dot_product_attention(query, keys, values, enable_gqa=True)

    return run


def stack(pool: Pool, tokens: int = 512) -> Iterator[Plan]:
    """Layers of Llama-3.1-8B as plain torch runs them: does the sum of the parts give the whole?

    Of each layer: 4 products, attention, 2 norms, 2 adds, 1 multiply in place of the rotary embedding, 2 cache
    writes, silu and multiply.
    """
    for rows in ROWS:
        weights = STACK_LAYERS * 2 * sum(p.n * p.k for p in PRODUCTS if p.name in _LAYER)
        cached = STACK_LAYERS * 4 * rows * tokens * KV_HEADS * HEAD
        make = functools.partial(_stack, pool, rows, tokens)
        shape = {"rows": rows, "tokens": tokens, "layers": STACK_LAYERS}
        yield Plan("stack", "8B layers", "bf16", shape, weights + cached, 0, make)


_LAYER = ("8B qkv", "8B o", "8B gate_up", "8B down")


def _stack(pool: Pool, rows: int, tokens: int) -> list[Body]:
    torch, flat, at = pool.torch, pool.bf16, 0
    nn = torch.nn.functional
    sizes = {product.name: (product.n, product.k) for product in PRODUCTS}
    layers = []
    for _ in range(STACK_LAYERS):
        weights = []
        for name in _LAYER:
            n, k = sizes[name]
            weights.append(flat[at : at + n * k].view(n, k))
            at += n * k
        layers.append(weights)
    caches = _caches(pool, rows, tokens)
    slots = torch.arange(rows, device="cuda") * 61
    written = _rows(pool, 4096, KV_HEADS * HEAD)
    start = _rows(pool, rows, HIDDEN)
    edge = HEADS * HEAD

    def forward() -> Any:
        x = start
        for index, (qkv, o, gate_up, down) in enumerate(layers):
            heads = torch.mm(nn.layer_norm(x, (HIDDEN,)), qkv.t())
            query = (heads[:, :edge] * 0.5).view(rows, HEADS, 1, HEAD)
            for part in heads[:, edge:].split(KV_HEADS * HEAD, dim=1):
                written.index_copy_(0, slots, part)
            keys, values = caches[index % len(caches)]
            seen = attend(pool, "FLASH_ATTENTION", query, keys, values)()
            x = torch.add(x, torch.mm(seen.reshape(rows, edge), o.t()))
            wide = torch.mm(nn.layer_norm(x, (HIDDEN,)), gate_up.t())
            x = torch.add(x, torch.mm(nn.silu(wide[:, :WIDE]) * wide[:, WIDE:], down.t()))
        return x

    return [forward]
