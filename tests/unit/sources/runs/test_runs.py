"""What is one run and what are two: by what files report, in any order and under any name."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from stepline.evidence import bundle
from stepline.evidence.evidence import Evidence
from stepline.evidence.merge import merge
from stepline.sources.read import read

STEP = "[2026-03-04 {time}] Decode batch, #running-req: {running}, #token: 900, token usage: 0.01, cuda graph: True, "
STEP += "gen throughput (token/s): 800.00, #queue-req: 0"
READY = "[2026-03-04 {time}] The server is fired up and ready to roll!"


def start(time: str, seed: int, **arguments: Any) -> str:
    told = {"model_path": "/m/ling-mini", "tp_size": 1, "random_seed": seed, "port": 30000, **arguments}
    pairs = ", ".join(f"{name}={value!r}" for name, value in told.items())
    return f"[2026-03-04 {time}] server_args=ServerArgs({pairs})"


def server(hour: int, seed: int, running: int = 8, **arguments: Any) -> list[str]:
    return [
        start(f"{hour:02d}:00:00", seed, **arguments),
        READY.format(time=f"{hour:02d}:01:00"),
        *(STEP.format(time=f"{hour:02d}:02:{second:02d}", running=running) for second in range(0, 50, 5)),
    ]


def result(hour: int, concurrency: int, **more: Any) -> dict[str, Any]:
    return {
        "date": f"20260304-{hour:02d}0250",
        "backend": "sglang",
        "model_id": "ling-mini",
        "tokenizer_id": "ling-mini",
        "max_concurrency": concurrency,
        "duration": 50.0,
        "completed": 320,
        "total_input_tokens": 320 * 500,
        "total_output_tokens": 320 * 200,
        "request_throughput": 4.0,
        "output_throughput": 800.0,
        "total_token_throughput": 2800.0,
        "mean_ttft_ms": 90.0,
        "mean_tpot_ms": 9.9,
        **more,
    }


def write(folder: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def lines(*parts: list[str]) -> str:
    return "".join(f"{line}\n" for part in parts for line in part)


def members(evidence: Evidence) -> list[set[str]]:
    return sorted(({file.path for file in run.files if file.kind} for run in evidence.runs), key=sorted)


def test_a_restart_is_a_new_run_even_with_the_same_arguments(tmp_path: Path) -> None:
    write(tmp_path, {"s.log": lines(server(1, 5, running=8), server(3, 5, running=16))})
    runs = read([tmp_path]).runs
    assert [{report.running for report in run.decodes} for run in runs] == [{8}, {16}]
    assert not any(run.doubts for run in runs)


def test_settings_of_one_start_never_reach_another(tmp_path: Path) -> None:
    capped = server(3, 6, max_running_requests=4)
    write(tmp_path, {"s.log": lines(capped, server(5, 7))})
    first, second = read([tmp_path]).runs
    assert first.server.max_running_requested is not None
    assert second.server.max_running_requested is None


def test_a_start_whose_start_line_is_lost_is_told_by_its_pools(tmp_path: Path) -> None:
    pool = "[2026-03-04 {}] max_total_num_tokens={}, max_running_requests=64, context_len=4096"
    steps = [STEP.format(time="01:02:00", running=4)] * 3
    write(
        tmp_path,
        {"s.log": lines([pool.format("01:00:00", 5000)], steps, [pool.format("02:00:00", 9000)], steps)},
    )
    pools = [run.server.kv_capacity_tokens for run in read([tmp_path]).runs]
    assert [pool.value for pool in pools if pool is not None] == [5000, 9000]


@pytest.mark.parametrize(
    "prefix",
    ["[pod/{}-0/engine] {}", "{}  | {}", "{}-6d5f7 engine {}", "Mar 04 01:02:03 node {}[17]: {}"],
    ids=["kubectl", "compose", "stern", "journald"],
)
def test_pods_in_one_file_are_told_apart_by_their_prefix(tmp_path: Path, prefix: str) -> None:
    pods = {"alpha": server(1, 5, running=8), "beta": server(1, 6, running=3, max_running_requests=3)}
    mixed = [
        prefix.format(name, line)
        for pair in zip(*pods.values(), strict=True)
        for name, line in zip(pods, pair, strict=True)
    ]
    write(tmp_path, {"all.log": lines(mixed)})
    runs = read([tmp_path]).runs
    assert sorted(sorted({r.running for r in run.decodes}) for run in runs) == [[3], [8]]
    caps = {run.decodes[0].running: run.server.max_running_requested for run in runs}
    assert caps[8] is None
    assert caps[3] is not None


def test_two_servers_in_one_log_without_a_prefix_answer_neither(tmp_path: Path) -> None:
    pair = zip(server(1, 5), server(1, 6, running=3, max_running_requests=3), strict=True)
    write(tmp_path, {"all.log": lines([line for both in pair for line in both]), "b.json": result(1, 8)})
    evidence = read([tmp_path])
    assert not any(run.decodes for run in evidence.runs)
    assert "cannot be told apart" in evidence.ungrouped[0].reason


def test_rotated_parts_are_one_run(tmp_path: Path) -> None:
    whole = server(1, 5)
    write(tmp_path, {"s.log.1": lines(whole[:6]), "s.log": lines(whole[6:])})
    (run,) = read([tmp_path]).runs
    assert len(run.decodes) == 10


def test_nodes_of_one_server_are_one_run(tmp_path: Path) -> None:
    nodes = {
        f"node{rank}.log": lines(server(1, 5, nnodes=2, node_rank=rank, dist_init_addr="a:1"))
        for rank in range(2)
    }
    assert len(read([write(tmp_path, nodes)]).runs) == 1


LAYOUTS = {
    "folders": ("one/s.log", "one/b.json", "two/s.log", "two/b.json"),
    "misleading folders": ("one/s.log", "two/b.json", "two/s.log", "one/b.json"),
    "neutral names": ("1.log", "4.json", "3.log", "2.json"),
}


@pytest.mark.parametrize("names", LAYOUTS.values(), ids=LAYOUTS)
def test_a_result_is_put_to_the_server_of_its_time_whatever_the_names(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    contents = [lines(server(1, 5)), result(1, 8), lines(server(5, 6)), result(5, 8)]
    evidence = read([write(tmp_path, dict(zip(names, contents, strict=True)))])
    assert members(evidence) == sorted([{names[0], names[1]}, {names[2], names[3]}], key=sorted)


def test_clocks_of_two_zones_are_set_by_what_both_report(tmp_path: Path) -> None:
    contents = {
        "1.log": lines(server(11, 5)),
        "2.log": lines(server(15, 6)),
        "3.json": result(3, 8),
        "4.json": result(7, 8),
    }
    assert members(read([write(tmp_path, contents)])) == [{"1.log", "3.json"}, {"2.log", "4.json"}]


def test_a_result_that_fits_two_runs_equally_joins_none(tmp_path: Path) -> None:
    twins = {"1.log": lines(server(1, 5)), "2.log": lines(server(1, 6)), "3.json": result(1, 8)}
    evidence = read([write(tmp_path, twins)])
    assert members(evidence) == [{"1.log"}, {"2.log"}]
    assert "fits 2 runs equally" in evidence.ungrouped[0].reason


def test_a_result_of_another_month_is_of_another_server(tmp_path: Path) -> None:
    write(tmp_path, {"s.log": lines(server(1, 5)), "b.json": result(1, 8, date="20260904-010250")})
    assert members(read([tmp_path])) == [{"b.json"}, {"s.log"}]


def test_without_a_server_workloads_are_runs_and_levels_of_one_are_not(tmp_path: Path) -> None:
    sweep = {f"{n}.json": result(n, n) for n in (1, 2, 4)}
    long = result(9, 4, total_input_tokens=320 * 4000)
    other = result(9, 4, dataset_name="sharegpt")
    evidence = read([write(tmp_path, {**sweep, "8.json": long})])
    assert members(evidence) == [{"1.json", "2.json", "4.json"}, {"8.json"}]
    named = {name: {**one, "dataset_name": "random"} for name, one in sweep.items()}
    evidence = read([write(tmp_path / "b", {**named, "8.json": other})])
    assert len(evidence.runs) == 2


def test_rows_of_one_file_that_name_other_servers_are_other_runs(tmp_path: Path) -> None:
    rows = [result(1, 8, max_num_seqs=4), result(2, 8, max_num_seqs=8)]
    together = read([write(tmp_path / "a", {"all.jsonl": "\n".join(json.dumps(row) for row in rows)})])
    apart = read([write(tmp_path / "b", {"1.json": rows[0], "2.json": rows[1]})])
    assert (
        [run.id for run in together.runs]
        == [run.id for run in apart.runs]
        == ["max-num-seqs-4", "max-num-seqs-8"]
    )


def test_a_summary_that_repeats_its_levels_is_no_second_measurement(tmp_path: Path) -> None:
    first, second = result(1, 8), result(2, 8, output_throughput=810.0)
    summary = "\n".join(json.dumps(row) for row in (first, second))
    (run,) = read([write(tmp_path, {"1.json": first, "2.json": second, "all.jsonl": summary})]).runs
    assert [level.tok_s for level in run.levels] == [800.0, 810.0]


def test_one_models_config_is_shared_and_two_are_not(tmp_path: Path) -> None:
    config = {"model_type": "llama", "hidden_size": 64, "architectures": ["LlamaForCausalLM"]}
    logs = {"1.log": lines(server(1, 5)), "2.log": lines(server(5, 6))}
    shared = read([write(tmp_path / "a", {**logs, "config.json": config})])
    assert all(run.model_config is not None for run in shared.runs)
    assert shared.shared == ("config.json",)
    two = {"x.json": config, "y.json": {**config, "hidden_size": 128}}
    apart = read([write(tmp_path / "b", {**logs, **two})])
    assert all(run.model_config is None for run in apart.runs)


def test_scrapes_of_one_process_are_one_run(tmp_path: Path) -> None:
    text = (
        "process_start_time_seconds {}\n"
        'vllm:num_requests_running{{model_name="m"}} 3\n'
        'vllm:request_success_total{{model_name="m"}} {}\n'
    )
    scrapes = {f"{n}.prom": text.format(1780840406.56 + 0.72 * (n % 2), 100.0 * n) for n in range(4)}
    assert members(read([write(tmp_path, scrapes)])) == [{"0.prom", "2.prom"}, {"1.prom", "3.prom"}]


def test_a_bundle_of_an_earlier_version_is_split_at_its_starts(tmp_path: Path) -> None:
    """It kept all starts of a log in one run, whose settings are the last one's."""
    (first, second) = read(
        [write(tmp_path / "log", {"s.log": lines(server(1, 5), server(3, 6, running=3))})]
    ).runs
    bundle.save(merge([first, second]), tmp_path / "saved")
    told = read([tmp_path / "saved"]).runs
    assert sorted(sorted({report.running for report in run.decodes}) for run in told) == [[3], [8]]
    assert [run.server.model is not None for run in told] == [False, True]


FIELD = ["f01", "f05", "f11", "f33", "f37"]


@pytest.mark.shared
@pytest.mark.parametrize("name", FIELD)
def test_neutral_names_and_another_order_make_no_other_runs(shared: Path, tmp_path: Path, name: str) -> None:
    folder = next((shared / "field" / "files").glob(f"{name}*"))
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "case.toml"]
    random.Random(7).shuffle(found)  # noqa: S311
    was = {f"{at:03d}": str(path.relative_to(folder)) for at, path in enumerate(found)}
    for at, path in enumerate(found):
        (tmp_path / f"{at:03d}").write_bytes(path.read_bytes())
    named = [{was[file] for file in own} for own in members(read([tmp_path]))]
    assert sorted(named, key=sorted) == [own - {"case.toml"} for own in members(read([folder]))]
