"""Dumps of settings, flat and nested, and environments."""

from stepline.sources.settings.dump import said_in_dump, said_in_environment


def values(said):
    return {word.name: word.value for word in said}


def test_a_flat_dump_keeps_what_the_catalogue_knows():
    said = said_in_dump(
        "sglang", {"cpu_offload_gb": 4, "tp_size": 2, "no_such_thing": 1}, "server_info", "f.json", 3
    )
    assert values(said) == {"cpu_offload_gb": 4, "tp_size": 2}
    assert (said[0].by, said[0].origin.file, said[0].origin.line) == ("server_info", "f.json", 3)


def test_nested_configs_are_read_by_the_arguments_that_they_hold():
    config = {
        "vllm_config": {
            "cache_config": {"cache_dtype": "fp8", "gpu_memory_utilization": 0.8},
            "scheduler_config": {"max_num_seqs": 12, "policy": "fcfs"},
            "compilation_config": {"cudagraph_mode": "FULL", "pass_config": {"fuse_norm_quant": True}},
        }
    }
    found = values(said_in_dump("vllm", config, "server_info", "f"))
    assert found["kv_cache_dtype"] == "fp8"
    assert found["gpu_memory_utilization"] == 0.8
    assert found["max_num_seqs"] == 12
    assert found["scheduling_policy"] == "fcfs"
    assert found["compilation_config.cudagraph_mode"] == "FULL"
    assert found["compilation_config.pass_config.fuse_norm_quant"] is True


def test_a_drafts_own_settings_are_not_the_models():
    config = {
        "model": "target",
        "speculative_config": {"model": "draft", "tensor_parallel_size": 1, "max_model_len": 9},
    }
    found = values(said_in_dump("vllm", config, "log", "f"))
    assert found["model"] == "target"
    assert found["speculative_config.model"] == "draft"
    assert "tensor_parallel_size" not in found
    assert "max_model_len" not in found


def test_the_outer_word_wins_over_one_inside():
    found = values(
        said_in_dump("vllm", {"max_num_seqs": 5, "scheduler_config": {"max_num_seqs": 7}}, "log", "f")
    )
    assert found["max_num_seqs"] == 5


def test_secrets_and_depth():
    deep: dict[str, object] = {}
    for _ in range(200):
        deep = {"a": deep}
    said = said_in_dump(
        "sglang", {"api_key": "sk-abcdefghijkl", "json_model_override_args": deep}, "log", "f"
    )
    assert "sk-abcdefghijkl" not in repr(said)
    assert values(said)["api_key"] == "[redacted]"
    assert len(repr(said)) < 5000


def test_variables_of_the_engine_and_of_none():
    said = said_in_environment(
        "vllm", {"VLLM_BATCH_INVARIANT": "1", "NCCL_ALGO": "Ring", "HOME": "/x"}, "env"
    )
    assert {(word.engine, word.name, word.value) for word in said} == {
        ("vllm", "VLLM_BATCH_INVARIANT", True),
        ("environment", "NCCL_ALGO", "Ring"),
    }
    assert values(said_in_environment(None, {"OMP_NUM_THREADS": "6"}, "env")) == {"OMP_NUM_THREADS": 6}
