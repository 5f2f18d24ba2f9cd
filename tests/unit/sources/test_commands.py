"""Launch commands wherever somebody pasted them."""

from pathlib import Path

from stepline.sources.commands import commands
from stepline.sources.read import read_one_run as read


def test_a_command_with_shortened_flags() -> None:
    (one,) = commands(
        [
            "$ python3 -m sglang.launch_server --model-path /m/X --tp 4 --disable-cuda-graph --speculative-algo EAGLE"
        ]
    )
    assert one.engine == "sglang"
    assert one.settings == {
        "model_path": "/m/X",
        "tp_size": 4,
        "disable_cuda_graph": True,
        "speculative_algorithm": "EAGLE",
    }


def test_a_command_over_several_lines() -> None:
    lines = [
        "VLLM_USE_V1=1 vllm serve org/model \\",
        "  --max-num-seqs=16 \\",
        "  --no-enable-prefix-caching",
        "done",
    ]
    (one,) = commands(lines)
    assert one.settings["model"] == "org/model"
    assert one.settings["max_num_seqs"] == 16
    assert one.settings["enable_prefix_caching"] is False
    assert "done" not in one.settings


def test_docker_and_lists_of_arguments() -> None:
    (one,) = commands(["docker run --gpus all vllm/vllm-openai:v0.11 --model org/m -tp 2 | tee out.log"])
    assert (one.settings["model"], one.settings["tensor_parallel_size"]) == ("org/m", 2)
    (other,) = commands(
        ["image: vllm/vllm-openai:latest", '- "--max-model-len=8192"', "- --enforce-eager", "ports: []"]
    )
    assert (other.settings["max_model_len"], other.settings["enforce_eager"]) == (8192, True)


def test_what_is_to_be_filled_in_is_not_known() -> None:
    (one,) = commands(["vllm serve <model> --max-num-seqs [max_num_seqs] --tensor-parallel-size 2"])
    assert one.settings == {"tensor_parallel_size": 2}


def test_a_config_in_json() -> None:
    (one,) = commands(
        ["""vllm serve m --speculative-config '{"method": "mtp", "num_speculative_tokens": 2}'"""]
    )
    assert one.settings["speculative_config"]["num_speculative_tokens"] == 2


def test_no_command_in_prose() -> None:
    assert list(commands(["We start it with vllm serve and wait.", "sglang is fast."])) == [] or all(
        not one.settings.get("max_num_seqs") for one in commands(["We start it with vllm serve and wait."])
    )


def test_settings_from_an_issue(tmp_path: Path) -> None:
    (tmp_path / "issue.md").write_text(
        "Slow since the update.\n\n```\nvllm serve org/m --max-num-seqs 8 --enforce-eager\n```\n\n"
        "| concurrency | output tok/s |\n|---|---|\n| 1 | 40 |\n| 16 | 120 |\n"
    )
    run = read([tmp_path])
    assert run.server.max_running is not None
    assert run.server.max_running.value == 8
    assert run.server.decode_graphs is not None
    assert run.server.decode_graphs.value is False
    assert [level.tok_s for level in run.levels] == [40, 120]


def test_results_at_the_end_of_a_log(tmp_path: Path) -> None:
    line = (
        "[2026-01-02 03:04:0{0} TP0] Decode batch, #running-req: 4, #token: 2560, token usage: 0.10, "
        "cuda graph: True, gen throughput (token/s): 210.00, #queue-req: 0\n"
    )
    block = (
        "============ Serving Benchmark Result ============\nMax request concurrency: 4\n"
        "Output token throughput (tok/s): 200.0\nMean TTFT (ms): 80.0\nMean TPOT (ms): 19.0\n"
    )
    (tmp_path / "all.log").write_text("".join(line.format(i) for i in range(4)) + block)
    run = read([tmp_path])
    assert len(run.decodes) == 4
    assert [(level.concurrency, level.tok_s) for level in run.levels] == [(4, 200)]


def test_a_report_in_yaml(tmp_path: Path) -> None:
    (tmp_path / "report.yaml").write_text(
        "load_summary:\n  requested_rate: 2.0\n  count: 8\nsuccesses:\n  count: 8\n  latency:\n"
        "    time_per_output_token:\n      mean: 0.012\n    request_latency:\n      mean: 0.9\n"
        "  throughput:\n    output_tokens_per_sec: 120.5\nfailures:\n  count: 0\n"
    )
    (level,) = read([tmp_path]).levels
    assert (level.tool, level.request_rate_s, level.tpot_ms, level.tok_s) == (
        "inference-perf",
        2.0,
        12.0,
        120.5,
    )


def test_a_sentence_about_a_command_names_no_model():
    told = "WARNING deprecated: start the server through vllm serve with the new options instead"
    assert [one.settings for one in commands([told])] == []
    assert [one.settings for one in commands(["$ vllm serve model --max-num-seqs 4"])] == [
        {"model": "model", "max_num_seqs": 4}
    ]
    assert [
        one.settings.get("model") for one in commands(["we ran vllm serve org/m-8b --enforce-eager"])
    ] == ["org/m-8b"]


def test_every_spelling_of_a_flag_is_one_setting() -> None:
    spellings = ("--tp 4", "--tp-size 4", "--tensor-parallel-size 4", "--tensor-parallel-size=4")
    read_as = [
        one.settings for flag in spellings for one in commands([f"sglang serve --model-path m {flag}"])
    ]
    assert read_as == [{"model_path": "m", "tp_size": 4}] * len(spellings)


def test_a_flag_of_another_release_keeps_its_name() -> None:
    (one,) = commands(["vllm serve org/m --num-scheduler-steps 8 --no-such-switch"])
    assert one.settings["num_scheduler_steps"] == 8
    assert one.settings["such_switch"] is False
