"""Launch commands of every engine, however they are wrapped, and text that is none."""

# engines' own lines and commands, whole

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.sources.settings.command import Launch, launch_of, launches


def read(text: str) -> tuple[str, dict[str, object]]:
    """(engine, value by name) of the one server that a text starts."""
    (launch,) = launches(text, "start.sh")
    return launch.engine, {said.name: said.value for said in launch.said}


@pytest.mark.parametrize(
    ("text", "engine", "expected"),
    [
        (
            "python3 -m sglang.launch_server --model-path m --tp 4",
            "sglang",
            {"model_path": "m", "tp_size": 4},
        ),
        ("python3 -m sglang.launch_server --cuda-graph-bs 1 2 4", "sglang", {"cuda_graph_bs": [1, 2, 4]}),
        ("python3 -m sglang.launch_server --chunked-prefill-size -1", "sglang", {"chunked_prefill_size": -1}),
        (
            "sglang serve --context-length 1M --disable-radix-cache",
            "sglang",
            {"context_length": 1048576, "disable_radix_cache": True},
        ),
        (
            "vllm serve org/m --max-num-seqs=64 --enforce-eager",
            "vllm",
            {"model": "org/m", "max_num_seqs": 64, "enforce_eager": True},
        ),
        ("vllm serve m --max_num_batched_tokens 4096", "vllm", {"max_num_batched_tokens": 4096}),
        ("vllm serve m --no-enable-prefix-caching", "vllm", {"enable_prefix_caching": False}),
        ("vllm serve m -tp 2 -O0", "vllm", {"tensor_parallel_size": 2, "optimization_level": "0"}),
        ("vllm serve m -cc.mode=3", "vllm", {"compilation_config.mode": "3"}),
        (
            "vllm serve m --compilation-config.pass-config.fuse-norm-quant true",
            "vllm",
            {"compilation_config.pass_config.fuse_norm_quant": True},
        ),
        ("python -m vllm.entrypoints.openai.api_server --model m --swap-space 4", "vllm", {"model": "m"}),
        (
            "trtllm-serve m --tp_size 2 --max_batch_size 16",
            "tensorrt_llm",
            {"tensor_parallel_size": 2, "max_batch_size": 16},
        ),
        (
            "./build/bin/llama-server -m x.gguf -np 8 --no-kv-offload",
            "llama_cpp",
            {"model": "x.gguf", "parallel": 8, "kv_offload": False},
        ),
        ("lmdeploy serve api_server m --tp 2 --eager-mode", "lmdeploy", {"tp": 2, "eager_mode": True}),
        (
            "text-generation-launcher --model-id m --max-batch-size 4",
            "tgi",
            {"model_id": "m", "max_batch_size": 4},
        ),
        ("python -m dynamo.frontend --router-mode kv", "dynamo", {"router_mode": "kv"}),
        ("python -m dynamo.vllm --model m --max-num-seqs 9", "vllm", {"max_num_seqs": 9}),
        ("torchrun --nproc 2 /opt/bin/vllm serve m --max-num-seqs 9", "vllm", {"max_num_seqs": 9}),
    ],
)
def test_each_engine_is_known_by_its_own_command(text, engine, expected):
    found, values = read(text)
    assert found == engine
    assert {name: values.get(name) for name in expected} == expected


def test_a_json_value_gives_itself_and_its_keys():
    _, values = read("""vllm serve m --speculative-config '{"method": "mtp", "num_speculative_tokens": 3}'""")
    assert values["speculative_config"] == {"method": "mtp", "num_speculative_tokens": 3}
    assert values["speculative_config.num_speculative_tokens"] == 3


def test_the_last_of_two_values_stands():
    assert read("vllm serve m --max-num-seqs 4 --max-num-seqs 8")[1]["max_num_seqs"] == 8


def test_variables_before_exported_and_inside_a_container():
    text = "export NCCL_P2P_DISABLE=1\nVLLM_USE_DEEP_GEMM=0 vllm serve m"
    assert read(text)[1] | {"model": "m"} == {
        "model": "m",
        "NCCL_P2P_DISABLE": True,
        "VLLM_USE_DEEP_GEMM": False,
    }
    contained = (
        "NCCL_P2P_DISABLE=1 docker run -e CUDA_LAUNCH_BLOCKING=1 --shm-size=8g vllm/vllm-openai:v1 --model m"
    )
    assert read(contained)[1] == {"model": "m", "CUDA_LAUNCH_BLOCKING": True, "container.shm_size": "8g"}


def test_a_container_with_options_of_every_form():
    text = (
        "docker run -d --rm --gpus all --cpus 2 --cpuset-cpus=0-3 --ulimit memlock=-1 -v /a:/b -p 1:2 --ipc host "
        "lmsysorg/sglang:latest python3 -m sglang.launch_server --model-path m"
    )
    _, values = read(text)
    assert values["container.cpus"] == 2
    assert values["container.cpuset"] == "0-3"
    assert values["container.ipc"] == "host"
    assert values["container.ulimit_memlock"] == "-1"
    assert values["model_path"] == "m"


def test_wrappers_are_settings_of_the_process():
    _, values = read("nice -n 10 taskset -c 0-1 numactl --cpunodebind=0 --membind=0 vllm serve m")
    assert values["process.nice"] == 10
    assert values["process.cpu_affinity"] == "0-1"
    assert values["process.numa"] == "--cpunodebind=0 --membind=0"


def test_shells_inside_shells_and_broken_lines():
    assert read('bash -c "export OMP_NUM_THREADS=4 && vllm serve m"')[1]["OMP_NUM_THREADS"] == 4
    assert read("vllm serve m \\\n  --max-num-seqs 3 \\\n  --enforce-eager")[1]["max_num_seqs"] == 3


def test_two_servers_of_one_text():
    found = launches("vllm serve a --port 1 &\nsglang serve --model b", "start.sh")
    assert [launch.engine for launch in found] == ["vllm", "sglang"]


def test_unknown_flags_are_named_and_take_no_other_value_away():
    (launch,) = launches("vllm serve m --frobnicate 3 --max-num-seqs 4", "x")
    assert launch.unknown == ("--frobnicate",)
    assert {said.name: said.value for said in launch.said}["max_num_seqs"] == 4


def test_keys_are_never_kept():
    secret = "sk-abcdefghijklmnop"  # noqa: S105
    overrides = f'\'{{"k": "{secret}"}}\''
    text = f"HF_TOKEN=hf_abcdefghijkl vllm serve m --api-key {secret} --hf-token {secret} --hf-overrides {overrides}"
    assert secret not in repr(launches(text, "x"))
    assert "hf_abcdefghijkl" not in repr(launches(text, "x"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ls -la",
        "echo 'vllm is nice'",
        "grep vllm serve.log",
        "docker ps",
        "docker run",
        "\x00\x00",
        "vllm bench serve --model m",
    ],
)
def test_text_that_starts_no_server_gives_none(text):
    assert launches(text, "x") == ()


def test_hostile_sizes_are_bounded():
    assert len(launches("vllm serve m " + "--max-num-seqs 4 " * 200_000, "x")[0].said) == 2
    deep = '{"a":' * 5000 + "1" + "}" * 5000
    launch = launch_of(["vllm", "serve", "m", "--hf-overrides", deep], "x")
    assert isinstance(launch, Launch)
    nested = 'bash -c "' * 50 + "vllm serve m"
    assert isinstance(launches(nested, "x"), tuple)


@given(st.text(alphabet=string.printable, max_size=200))
def test_no_text_raises(text):
    launches("vllm serve " + text, "x")
    launches(text, "x")


@given(st.lists(st.text(max_size=12), max_size=12))
def test_no_words_raise(words):
    launch_of(["python", "-m", "sglang.launch_server", *words], "x")
