"""All rules, in the order of the catalogue. Adding a rule is one file and one line here."""

from stepline.errors import UsageError
from stepline.findings.outcome import Rule
from stepline.findings.rules import (
    admission_throttled,
    attention_occupancy,
    batch_capped,
    client_bound,
    clock_throttle,
    cold_start,
    comm_bound,
    context_capacity_work,
    cuda_graph_off,
    cuda_graph_uncovered_batch,
    excess_communication,
    excess_host,
    excess_kernels,
    excess_scheduling,
    frontend_bound,
    gpu_fault,
    grammar_stall,
    host_bound,
    host_memory_placement,
    kernel_fallback,
    kv_capacity_bound,
    kv_preemption,
    linear_step,
    pd_transfer,
    prefill_interference,
    prefix_cache_distortion,
    process_contention,
    queue_not_decode,
    redundant_reads,
    short_outputs,
    spec_not_paying,
    straggler_rank,
    tensor_pipe_idle,
    trace_integrity,
    wrong_dtype,
)

RULES: tuple[Rule, ...] = (
    client_bound.RULE,
    prefix_cache_distortion.RULE,
    short_outputs.RULE,
    cold_start.RULE,
    trace_integrity.RULE,
    queue_not_decode.RULE,
    excess_scheduling.RULE,
    batch_capped.RULE,
    kv_capacity_bound.RULE,
    kv_preemption.RULE,
    prefill_interference.RULE,
    spec_not_paying.RULE,
    admission_throttled.RULE,
    excess_host.RULE,
    host_bound.RULE,
    cuda_graph_off.RULE,
    cuda_graph_uncovered_batch.RULE,
    frontend_bound.RULE,
    grammar_stall.RULE,
    process_contention.RULE,
    host_memory_placement.RULE,
    excess_kernels.RULE,
    context_capacity_work.RULE,
    attention_occupancy.RULE,
    linear_step.RULE,
    kernel_fallback.RULE,
    wrong_dtype.RULE,
    tensor_pipe_idle.RULE,
    redundant_reads.RULE,
    excess_communication.RULE,
    comm_bound.RULE,
    straggler_rank.RULE,
    pd_transfer.RULE,
    clock_throttle.RULE,
    gpu_fault.RULE,
)


def find_rule(name: str) -> Rule:
    """A rule by its code or name, in any case.

    Raises:
        UsageError: when there is none, naming those there are.
    """
    wanted = name.strip().lower().replace("_", "-")
    for rule in RULES:
        if wanted in (rule.code.lower(), rule.codename):
            return rule
    known = ", ".join(f"{rule.code} {rule.codename}" for rule in RULES)
    raise UsageError(f"no rule is called {name!r}; the rules are {known}")
