"""vLLM 0.20's `/metrics` page."""

from stepline.lab.sim.instruments.counters import Counters
from stepline.lab.sim.instruments.prometheus import histogram
from stepline.lab.sim.vllm.info import BLOCK
from stepline.lab.sim.vllm.policy import VllmScheduler


def render(scheduler: VllmScheduler, counters: Counters, responses: int) -> str:
    """The page in Prometheus' text format; counters that never counted read zero, as they do there."""
    settings = scheduler.settings
    labels = f'engine="0",model_name="{settings.model}"'
    values: dict[str, float] = {
        "num_requests_running": len(scheduler.running),
        "num_requests_waiting": len(scheduler.waiting),
        "kv_cache_usage_perc": scheduler.used / settings.kv_tokens,
        "prefix_cache_queries_total": scheduler.queried_tokens,
        "prefix_cache_hits_total": counters.cached_tokens,
        "num_preemptions_total": counters.retracted,
        "prompt_tokens_total": counters.prefill_tokens + counters.cached_tokens,
        "generation_tokens_total": counters.made,
    }
    if settings.speculation:
        values["spec_decode_num_drafts_total"] = counters.drafts
        values["spec_decode_num_draft_tokens_total"] = counters.draft_tokens
        values["spec_decode_num_accepted_tokens_total"] = counters.accepted
    lines = [f"vllm:{name}{{{labels}}} {float(value)}" for name, value in values.items()]
    lines += [
        f'vllm:request_success_total{{engine="0",finished_reason="{reason}",model_name="{settings.model}"}} {float(n)}'
        for reason, n in (("stop", 0), ("length", counters.finished), ("abort", 0))
    ]
    lines += histogram("vllm:iteration_tokens_total", labels, counters.step_tokens)
    lines += histogram("vllm:time_to_first_token_seconds", labels, counters.ttft)
    lines += histogram("vllm:inter_token_latency_seconds", labels, counters.output_gap)
    lines += histogram("vllm:e2e_request_latency_seconds", labels, counters.e2e)
    lines += histogram("vllm:request_queue_time_seconds", labels, counters.queue)
    lines.append(
        f'vllm:cache_config_info{{block_size="{BLOCK}",cache_dtype="auto",enable_prefix_caching='
        f'"{settings.prefix_cache}",engine="0",gpu_memory_utilization="{settings.memory_share}",'
        f'num_gpu_blocks="{settings.kv_tokens // BLOCK}"}} 1.0'
    )
    lines.append(
        f'http_requests_total{{handler="/v1/completions",method="POST",status="2xx"}} {float(responses)}'
    )
    return "\n".join(lines) + "\n"
