"""Cuts a capture down to what tests need: no progress bars, no start-up chatter, no histogram buckets.

Run: python tests/data/trim_capture.py CAPTURES tests/data/h200-sglang-2
"""

import json
import sys
from pathlib import Path

SETTINGS = [
    "model_path",
    "load_format",
    "dtype",
    "quantization",
    "kv_cache_dtype",
    "context_length",
    "tp_size",
    "dp_size",
    "pp_size",
    "ep_size",
    "enable_dp_attention",
    "max_running_requests",
    "max_total_tokens",
    "chunked_prefill_size",
    "max_prefill_tokens",
    "page_size",
    "disable_cuda_graph",
    "cuda_graph_config",
    "cuda_graph_max_bs_decode",
    "disable_overlap_schedule",
    "disable_radix_cache",
    "decode_log_interval",
    "attention_backend",
    "moe_runner_backend",
    "speculative_algorithm",
    "speculative_num_draft_tokens",
    "disaggregation_mode",
    "mem_fraction_static",
    "max_total_num_tokens",
    "version",
    "schedule_conservativeness",
]
STATE = (
    "last_gen_throughput",
    "memory_usage",
    "effective_max_running_requests_per_dp",
    "avg_spec_accept_length",
)


def trim(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    log = (source / "server.log").read_text(errors="replace").splitlines()
    kept = [
        line[:400]
        for line in log
        if line.startswith("[") and "Capturing" not in line and "server_args=" not in line
    ]
    (target / "server.log").write_text("\n".join(kept) + "\n")
    info = json.loads((source / "server_info.json").read_text())
    state = info["internal_states"][0]
    short = {name: info[name] for name in SETTINGS if name in info}
    short["internal_states"] = [{name: state[name] for name in STATE if name in state}]
    (target / "server_info.json").write_text(json.dumps(short) + "\n")
    metrics = (source / "metrics.txt").read_text().splitlines()
    wanted = [
        line
        for line in metrics
        if not line.startswith("#") and "_bucket{" not in line and "routing_key" not in line
    ]
    (target / "metrics.txt").write_text("\n".join(wanted) + "\n")
    for name in ("gpm.csv", "sweep.json", "config.json", "truth.toml"):
        (target / name).write_bytes((source / name).read_bytes())


if __name__ == "__main__":
    for folder in sorted(path for path in Path(sys.argv[1]).iterdir() if path.is_dir()):
        trim(folder, Path(sys.argv[2]) / folder.name)
