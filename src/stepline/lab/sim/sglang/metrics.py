"""SGLang 0.5.16's `/metrics` page."""

from stepline.lab.sim.instruments.counters import Counters
from stepline.lab.sim.instruments.prometheus import histogram
from stepline.lab.sim.sglang.policy import SglangScheduler


def render(
    scheduler: SglangScheduler, counters: Counters, *, throughput: float, accept_length: float, responses: int
) -> str:
    """The page in Prometheus' text format; gauges of an idle engine keep their last values, as the real ones do."""
    settings = scheduler.settings
    front = f'engine_type="unified",model_name="{settings.model}"'
    rank = f'{front},moe_ep_rank="0",pp_rank="0",tp_rank="0"'
    usage = scheduler.used / settings.kv_tokens
    graph = settings.graph_sizes and len(scheduler.running) <= max(settings.graph_sizes)
    gauges: dict[str, float] = {
        "max_total_num_tokens": settings.kv_tokens,
        "page_size": 1,
        "num_pages": settings.kv_tokens,
        "context_len": settings.context_length,
        "num_running_reqs": len(scheduler.running),
        "num_queue_reqs": len(scheduler.waiting),
        "num_grammar_queue_reqs": 0,
        "gen_throughput": throughput,
        "cache_hit_rate": counters.cached_tokens / max(1, counters.cached_tokens + counters.prefill_tokens),
        "decode_sum_seq_lens": sum(request.held for request in scheduler.running),
        "token_usage": round(usage, 2),
        "full_token_usage": usage,
        "num_used_tokens": scheduler.used,
        "kv_available_tokens": scheduler.free - scheduler.cache.tokens,
        "kv_evictable_tokens": scheduler.cache.tokens,
        "kv_used_tokens": scheduler.used,
        "spec_accept_length": accept_length,
        "spec_num_draft_tokens": settings.speculation.draft_tokens if settings.speculation else 0,
        "new_token_ratio": scheduler.ratio,
        "is_cuda_graph": float(bool(graph)),
    }
    lines = [f"sglang:{name}{{{rank}}} {float(value)}" for name, value in gauges.items()]
    lines.append(f"sglang:fwd_occupancy{{{rank}}} NaN")
    lines.extend(histogram("sglang:time_to_first_token_seconds", front, counters.ttft))
    lines.extend(histogram("sglang:e2e_request_latency_seconds", front, counters.e2e))
    lines.extend(histogram("sglang:inter_token_latency_seconds", front, counters.itl))
    lines.extend(histogram("sglang:queue_time_seconds", rank, counters.queue))
    totals = {
        'http_requests_total{endpoint="/generate",method="POST"}': counters.received,
        'http_responses_total{endpoint="/generate",method="POST",status_code="200"}': responses,
        f"prompt_tokens_total{{{front}}}": counters.prompt_tokens,
        f"generation_tokens_total{{{front}}}": counters.generated,
        f"num_requests_total{{{front}}}": counters.finished,
        f"num_retracted_requests_total{{{rank}}}": counters.retracted,
        f'cuda_graph_passes_total{{mode="prefill_cuda_graph",{rank}}}': counters.prefill_passes[True],
        f'cuda_graph_passes_total{{mode="prefill_none",{rank}}}': counters.prefill_passes[False],
        f'cuda_graph_passes_total{{mode="decode_cuda_graph",{rank}}}': counters.decode_passes[True],
        f'cuda_graph_passes_total{{mode="decode_none",{rank}}}': counters.decode_passes[False],
        f'realtime_tokens_total{{mode="prefill_compute",{rank}}}': counters.prefill_tokens,
        f'realtime_tokens_total{{mode="prefill_cache",{rank}}}': counters.cached_tokens,
        f'realtime_tokens_total{{mode="decode",{rank}}}': counters.decode_tokens,
        'evicted_tokens_total{cache_type="RadixCache"}': scheduler.cache.evicted_tokens,
    }
    # A labelled counter that never counted has no sample in the real page either.
    lines.extend(f"sglang:{name} {float(value)}" for name, value in totals.items() if value)
    return "\n".join(lines) + "\n"
