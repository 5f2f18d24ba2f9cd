"""Kubernetes and compose manifests, in the block and inline styles that people write."""

import pytest

from stepline.sources.settings.manifest import manifest_launches

KUBERNETES = """
spec:
  containers:
    - name: server
      image: vllm/vllm-openai:v0.24.0
      args:
        - m
        - --max-num-seqs
        - "64"
        - --no-enable-prefix-caching  # measured without
      env:
        - name: NCCL_P2P_DISABLE
          value: "1"
        - name: HF_TOKEN
          valueFrom: {secretKeyRef: {name: hf, key: token}}
    - name: sidecar
      image: nginx
      args: ["--max-num-seqs", "9"]
"""
COMPOSE = """
services:
  llm:
    image: lmsysorg/sglang:v0.5.16
    shm_size: 32g
    cpus: "4"
    environment:
      CUDA_LAUNCH_BLOCKING: "1"
    command: >
      python3 -m sglang.launch_server
      --model-path m --tp 2
      --disable-cuda-graph
  other:
    image: ghcr.io/huggingface/text-generation-inference:3
    command: --model-id n --max-batch-prefill-tokens 2048
    environment:
      - OMP_NUM_THREADS=1
"""


def values(launch):
    return {said.name: said.value for said in launch.said}


def test_a_pod_gives_the_settings_of_its_own_container_alone():
    (launch,) = manifest_launches(KUBERNETES, "pod.yaml")
    assert launch.engine == "vllm"
    assert values(launch)["max_num_seqs"] == 64
    assert values(launch)["enable_prefix_caching"] is False
    assert values(launch)["NCCL_P2P_DISABLE"] is True
    assert launch.unknown == ()


def test_compose_gives_every_service():
    sglang, tgi = manifest_launches(COMPOSE, "compose.yaml")
    assert values(sglang)["tp_size"] == 2
    assert values(sglang)["disable_cuda_graph"] is True
    assert values(sglang)["CUDA_LAUNCH_BLOCKING"] is True
    assert values(sglang)["container.shm_size"] == "32g"
    assert values(sglang)["container.cpus"] == 4
    assert values(tgi)["max_batch_prefill_tokens"] == 2048
    assert values(tgi)["OMP_NUM_THREADS"] == 1


@pytest.mark.parametrize(
    "args",
    [
        'args: ["vllm", "serve", "m", "--max-num-seqs", "5"]',
        "command: vllm serve m --max-num-seqs 5",
        "command: [vllm, serve, m, --max-num-seqs=5]",
        "command:\n      - /bin/bash\n      - -c\n      - vllm serve m --max-num-seqs 5",
        "command: |\n      vllm serve m \\\n        --max-num-seqs 5",
    ],
)
def test_a_command_in_any_of_its_spellings(args):
    text = f"services:\n  a:\n    {args}\n    image: mine/engine:1\n"
    (launch,) = manifest_launches(text, "x")
    assert values(launch)["max_num_seqs"] == 5


@pytest.mark.parametrize(
    "text", ["", "image:", "image: x\nargs:", "- - - image: vllm/vllm-openai", "{[", "image: a\n" * 3000]
)
def test_rubbish_gives_nothing_and_never_raises(text):
    assert isinstance(manifest_launches(text, "x"), tuple)
