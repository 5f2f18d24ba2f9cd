"""The least time the prefill of new tokens can take."""

from stepline.model.roofline.architecture_parts import Cache
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.forward_cost import Routing, expert_work, matrix_work
from stepline.model.roofline.layout import check_layout


def prefill_floor_ms(
    deployment: Deployment,
    new_tokens: float,
    *,
    sequences: float = 1.0,
    cached_tokens: float = 0.0,
    routing: Routing = "strict",
) -> float:
    """Return the floor in ms of prefilling `new_tokens` tokens, in all, of `sequences` equal prompts.

    The larger of FLOPs at the dense peak (the head for the last token of each prompt only; causal attention
    over what each token sees) and one read of the weights, with the experts that `routing` touches.
    Collectives are left out.

    Args:
        deployment: The model, its GPUs and the type of its cache.
        new_tokens: Tokens computed, not found in a prefix cache.
        sequences: Prompts they belong to.
        cached_tokens: Tokens of each prompt that were cached already and are attended to.
        routing: Whose experts are read: 'strict' one token's, 'expected' all that uniform routing touches.
    """
    architecture, gpu, layout = deployment.architecture, deployment.gpu, deployment.layout
    check_layout(architecture, layout)
    work = [
        *matrix_work(architecture.body, layout, new_tokens),
        *expert_work(architecture.body, layout, new_tokens, routing),
    ]
    compute_s = sum(part.flops / gpu.peak(part.math) for part in work if part.component != "head")
    heads = (part for part in matrix_work(architecture.body, layout, sequences) if part.component == "head")
    compute_s += sum(part.flops / gpu.peak(part.math) for part in heads)
    own = new_tokens / sequences
    for cache in architecture.body.caches:
        entries = _entries_seen(cache, cached_tokens + own) - _entries_seen(cache, cached_tokens)
        degree = max(1, min(layout.attention_tp, architecture.heads))
        compute_s += sequences * entries * cache.layers * cache.flops / degree / gpu.peak("bf16")
    bandwidth_s = sum(part.bytes for part in work) / gpu.bandwidth_bytes_s
    return max(compute_s, bandwidth_s) * 1e3


def _entries_seen(cache: Cache, tokens: float) -> float:
    """Entries that queries at positions 0 to `tokens` attend to in all: the integral of `entries_read`."""
    if cache.read_cap is None:
        return tokens * tokens / (2 * cache.stride)
    knee = min(tokens, cache.read_cap * cache.stride)
    return knee * knee / (2 * cache.stride) + (tokens - knee) * cache.read_cap
