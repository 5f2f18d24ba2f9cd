"""vLLM's `/server_info`, as nested JSON and as one text."""

import json
from pathlib import Path

import pytest

from stepline.sources.read import read_one_run as read

NESTED = {
    "model_config": {
        "model": "org/m",
        "max_model_len": 8192,
        "dtype": "torch.bfloat16",
        "enforce_eager": False,
    },
    "cache_config": {"block_size": 16, "cache_dtype": "auto", "enable_prefix_caching": True},
    "parallel_config": {"tensor_parallel_size": 4, "data_parallel_size": 1, "enable_expert_parallel": True},
    "scheduler_config": {"max_num_seqs": 256, "max_num_batched_tokens": 8192},
    "speculative_config": {"method": "mtp", "num_speculative_tokens": 2, "model": "other"},
    "compilation_config": {"cudagraph_capture_sizes": [4, 2, 1], "cudagraph_mode": "FULL_AND_PIECEWISE"},
}
TEXT = (
    "model='org/m', speculative_config=SpeculativeConfig(method='mtp', num_spec_tokens=2), max_seq_len=8192, "
    "tensor_parallel_size=4, dtype=torch.bfloat16, enforce_eager=False, enable_prefix_caching=True"
)


@pytest.mark.parametrize("config", [NESTED, TEXT], ids=["json", "text"])
def test_settings(tmp_path: Path, config: object) -> None:
    (tmp_path / "info.json").write_text(json.dumps({"vllm_config": config, "vllm_env": {}}))
    server = read([tmp_path]).server
    said = {
        field: value.value
        for field in server.__struct_fields__
        if (value := getattr(server, field)) is not None
    }
    common = {"engine": "vllm", "model": "org/m", "tp": 4, "context_length": 8192, "weight_dtype": "bfloat16"}
    common |= {"speculative": "mtp", "draft_tokens": 3, "prefix_cache": True}
    assert said.items() >= common.items()
    if config is NESTED:
        assert said["max_running"] == 256
        assert said["ep"] == 4
        assert said["decode_graph_sizes"] == (1, 2, 4)
        assert said["graph_mode"] == "full_and_piecewise"
