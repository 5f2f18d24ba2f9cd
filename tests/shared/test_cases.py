"""Every public case is read: what its files were taken for, or the sentence why one was passed over."""

import tomllib
from pathlib import Path

import pytest

from stepline.errors import UnreadableEvidence
from stepline.evidence.merge import merge
from stepline.evidence.run import Run
from stepline.sources.read import read as read_all
from stepline.sources.read import read_one_run as read

NOT_SERVERS = {
    "77-deepseek-v3-h800-profile/bench.csv": "tokens per GPU against a simulator's",
    "39-freetoken-prefill-priority/timeline.csv": "a timeline of phases",
    "11-sglang-dsv41-graph-width/bench.json": "savings an author derived",
    "73-vllm-bench-fixed-seed-spark/ab.csv": "ratios alone",
    "73-vllm-bench-fixed-seed-spark/bench.json": "ratios of one cell",
    "47-sglang-detok-itl-gap/server.log": "one warning without an engine's line",
}
"""Files that hold no evidence about a server's load, steps or settings."""


def cases(shared: Path) -> list[Path]:
    return sorted(path.parent for path in (shared / "cases").glob("*/case.toml"))


@pytest.mark.shared
def test_every_case_is_read_or_passed_over_with_a_sentence(shared: Path) -> None:
    folders = cases(shared)
    assert len(folders) == 43
    passed: dict[str, str] = {}
    for folder in folders:
        names = tomllib.loads((folder / "case.toml").read_text())["data"]["files"]
        for name in names:
            try:
                run = read([folder / name])
            except UnreadableEvidence as error:
                passed[f"{folder.name}/{name}"] = str(error)
                continue
            assert run.files[0].kind is not None
            said = [value for field in run.server.__struct_fields__ if (value := getattr(run.server, field))]
            times = run.files[0].kind == "micro-benchmark"  # listed as what it is: no evidence of a step
            assert not run.empty or said or times, f"{folder.name}/{name} was read and says nothing"
            assert not run.doubts, f"{folder.name}/{name}: {run.doubts}"
    for name, sentence in passed.items():
        print(f"{name}: {sentence}")
    assert passed.keys() == NOT_SERVERS.keys()


def run_of(shared: Path, slug: str) -> Run:
    folder = next(folder for folder in cases(shared) if folder.name.endswith(slug))
    return merge(read_all([path for path in sorted(folder.iterdir()) if path.name != "case.toml"]).runs)


@pytest.mark.shared
def test_what_the_cases_say(shared: Path) -> None:
    capped = run_of(shared, "glm52-h200-c256-64-running").levels[1]
    assert capped.decoding == pytest.approx(64.0, rel=0.01)
    assert capped.concurrency == 256

    width = run_of(shared, "sglang-dsv41-graph-width")
    at_eight = next(t for t in width.levers if t.condition == "x8" and t.context_tokens == 2048)
    assert {at_eight.lever, f"context_length={at_eight.value_before}"} == {
        "context_length=131072",
        "context_length=1048576",
    }
    assert max(at_eight.speedup, 1 / at_eight.speedup) == pytest.approx(2.68, abs=0.01)

    ranks = run_of(shared, "h20-deepseek-r1-dp-balanced").decodes
    assert sorted(record.dp for record in ranks if record.dp is not None) == [2, 3, 4, 5]
    assert sum(record.running for record in ranks) == 128

    assert run_of(shared, "sglang-dsv4-retraction").decodes[0].pool_usage == 1.0
    assert run_of(shared, "vllm-recompute-counted-as-hit").decodes[0].queued == 535
    assert run_of(shared, "vllm-qwen35-0p8b-mtp").decodes[0].accept_length == 1.97

    transfers = run_of(shared, "dynamo-ucx-no-rdma").transfers
    assert sorted(round(transfer.duration_ms or 0) for transfer in transfers) == [3, 1803]
    assert len(run_of(shared, "sglang-pd-mooncake-slow").transfers) == 8

    eager = run_of(shared, "h200-gpt2-eager").levers
    arms = {frozenset((t.lever.partition("=")[2], t.value_before)) for t in eager}
    assert arms == {frozenset(("cuda_graph", "eager")), frozenset(("vllm", "sglang"))}


@pytest.mark.shared
def test_the_captures_of_a_real_engine(shared: Path) -> None:
    for name in ("cap8", "healthy", "nograph", "v4_torch_8k", "v4_torch_1m"):
        folder = shared / "data" / "h200-sglang" / name
        run = read([path for path in sorted(folder.iterdir()) if "trace" not in path.name])
        assert run.decodes
        assert run.gpu_samples
        assert run.levels
        assert run.server.max_running is not None
        assert {file.damaged for file in run.files} == {0}
        assert run.doubts == (), name
