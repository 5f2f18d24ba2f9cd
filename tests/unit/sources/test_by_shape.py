# ruff: noqa: E501  # lines of a log, one string each
"""What is read many lines at a time is what the same log gives line by line: every record, event and remark."""

import gzip
import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepline.evidence.merge import merge
from stepline.evidence.run import Run
from stepline.sources.engines.sglang import templates as sglang
from stepline.sources.engines.sglang.log import SglangLog
from stepline.sources.engines.vllm import templates as vllm
from stepline.sources.logs import lines, shapes
from stepline.sources.logs.shapes import FOLLOWING
from stepline.sources.logs.template import Templates
from stepline.sources.peek import peek
from stepline.sources.read import read_one_run as read
from stepline.sources.readers import log
from stepline.sources.readers.log import read_starts, recognises
from tests.captures import DATA
from tests.unit.sources.engines.sglang.test_batch_lines import DECODES, PREFILLS
from tests.unit.sources.engines.vllm.test_log import STATS

BATCH = [variant.line for variant in (*DECODES.values(), *PREFILLS.values())]
STATE = [line for line, _ in STATS.values()]
FORWARDS = [
    "(EngineCore_DP1 pid=9) INFO 04-09 11:17:53 [core.py:400] Iteration(7): 0 context requests, 0 context tokens, 16 generation requests, 16 generation tokens, iteration elapsed time: 20.00 ms",
    "(APIServer pid=9) INFO 04-09 11:17:53 [loggers.py:400] Engine 002: Iteration(8): 1 context requests, 512 context tokens, 16 generation requests, 64 generation tokens, iteration elapsed time: 33.25 ms, GPU KV cache usage: 12.0%",
    "(EngineCore_DP1 pid=9) INFO 04-09 11:17:53 [core.py:400] Iteration(9): 0 context requests, 0 context tokens, 0 generation requests, 0 generation tokens, iteration elapsed time: 1.00 ms (dummy)",
]
OTHERS = [
    "INFO 04-09 11:17:53 [metrics.py:101] SpecDecoding metrics: Mean acceptance length: 1.97, Accepted throughput: 63.00 tokens/s, Avg Draft acceptance rate: 96.6%",
    "INFO 04-09 11:17:53 [x.py:1] | 5               | 8             | 3            | FULL         | 116   |",
    "WARNING 04-09 11:17:53 scheduler.py:1242] Sequence group cmpl-1 is preempted by PreemptionMode.RECOMPUTE mode",
    "INFO [gpu_worker.py:227] Available KV cache memory: 52.50 GiB",
    "[2025-11-29 16:31:54 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_token_ratio: 0.4 -> 0.6",
    "[2025-11-29 16:31:54] server_args=ServerArgs(model_path='m', tp_size=2)",
    "[2025-11-29 16:31:54 TP0] max_total_num_tokens=1234, max_running_requests=48, context_len=8192",
    "[2025-11-29 16:31:54 TP0] Using default MoE kernel config. Performance might be sub-optimal! Config file not found at /a/E=8.json",
    "Transfer Engine Throughput: 12.5 GB/s",
    '[2025-11-29 16:31:54] INFO:     10.0.0.1:35262 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    '[2025-11-29 16:31:54] INFO:     10.0.0.1:35262 - "POST /generate HTTP/1.1" 503 Service Unavailable',
    "[2025-11-29 16:31:54 TP0] Memory pool end. avail mem=27.80 GB",
    "a prompt with a Decode batch, #running-req: 5 in it",
    "",
]
ENGINES = {
    "TensorRT-LLM": [
        "[TRT-LLM] [I] iter = 7, global_rank = 0, rank = 0, num_scheduled_requests = 9, kv_cache_util = 0.25, host_step_time = 20.0ms, prev_device_step_time = 15.0ms, timestamp = 2025-11-29 16:31:54, states = {'num_ctx_requests': 1, 'num_ctx_tokens': 512, 'num_generation_tokens': 8}",
        "[TRT-LLM] [W] iter = x, host_step_time = ",
    ],
    "llama.cpp": [
        "srv    load_model: initializing slots, n_slots = 4",
        "llama_context: n_ctx_per_seq = 4096",
        "slot print_timing: id  0 | task 1 |        eval time = 3699.80 ms / 155 tokens ( 24.00 ms per token, 41.62 tokens per second)",
    ],
    "LMDeploy": [
        "[2025-11-29 16:31:54 DP0] Avg thr (in/out): 10.0 / 20.5 tokens/s, Server (succeeded/failed/routed/waiting): 1 / 2 / 3 / 4, Engine (running/waiting): 5 / 6, KV cache: 7.5%, Prefix cache hit rate: 1.0%",
        "[2025-11-29 16:31:54 DP0] Avg thr (in/out): 10.0",
    ],
    "TGI": [
        "2025-11-29T16:31:54Z INFO text_generation_launcher: Cuda Graphs are enabled for sizes [32, 16, 8]",
        "2025-11-29T16:31:54Z INFO text_generation_launcher: Setting max batch total tokens to 4096",
    ],
    "Dynamo": ["2025-11-29 16:31:54 nixl.write_blocks: Total time for write: 12.5 ms"],
}
TREATMENTS: dict[str, Callable[[str, int], str]] = {
    "whole": lambda line, _: line,
    "cut": lambda line, at: line[: at % (len(line) + 1)],
    "beheaded": lambda line, at: line[at % (len(line) + 1) :],
    "wrapped": lambda line, at: "\n".join(
        line[n : n + 60 + at % 60] for n in range(0, len(line), 60 + at % 60)
    ),
    "carriage return": lambda line, _: line + "\r",
    "progress bar": lambda line, at: f"\r{at % 100}%|██████    | {at % 10}/9 [00:00<?]\r" + line,
    "coloured": lambda line, _: "\x1b[1;32m" + line.replace(": ", ": \x1b[0m", 1),
    "Docker": lambda line, _: json.dumps({"log": line + "\n", "time": "2025-11-29T16:31:54.25Z"}),
    "logging config": lambda line, _: json.dumps(
        {"asctime": "2025-11-29 16:31:54,250", "message": line[26:]}
    ),
    "not ASCII": lambda line, _: "容器-1 | " + line,
    "not UTF-8": lambda line, _: "\udcff\udce9 " + line,
    "twice": lambda line, _: line + " " + line,
}


def with_digits(line: str, seed: int) -> str:
    """The line with other digits; months, days and hours stay valid."""
    rng = random.Random(seed)  # noqa: S311
    head, stamp, tail = line.partition(":54")
    return head + stamp + re.sub(r"\d", lambda _: str(rng.randint(0, 9)), tail) if stamp else line


def both_ways(path: Path, size: int = 600) -> tuple[Run, Run]:
    """The run line by line, as an opening this short is read, and the one by shapes past its first `size` bytes."""
    whole = merge(read_starts(peek(path, path.name)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "MANY_BYTES", 0)
        patch.setattr(lines, "CHUNK_BYTES", size)
        patch.setattr(lines, "READ_BYTES", max(1, size // 9))
        return whole, merge(read_starts(peek(path, path.name)))


def a_log(seed: int, count: int) -> bytes:
    """Every kind of line as it comes, a few of them damaged or dressed up."""
    rng = random.Random(seed)  # noqa: S311
    made = [BATCH[0], STATE[0]]
    for _ in range(count):
        line = with_digits(rng.choice(BATCH * 4 + STATE * 4 + FORWARDS * 8 + OTHERS), rng.randint(0, 10**6))
        treatment = rng.choice(["whole"] * 30 + list(TREATMENTS))
        made.append(TREATMENTS[treatment](line, rng.randint(0, 300)))
    return "\n".join(made).encode("utf-8", "surrogateescape")


REGULAR = [*((sglang, line) for line in BATCH), *((vllm, line) for line in (*STATE, *FORWARDS))]


@pytest.mark.parametrize(("templates", "line"), REGULAR)
def test_every_variant_has_a_template(templates: Templates, line: str) -> None:
    singly = "Preemptions" in line or "(dummy)" in line
    assert (templates.learn(line) is None) == singly


LOGS = sorted(DATA.rglob("server.log*"))


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.parent.name)
def test_captures(path: Path) -> None:
    whole, shaped = both_ways(path, 5_000)
    assert shaped == whole
    assert whole.decodes


def test_shared_cases(shared: Path) -> None:
    for path in sorted((shared / "cases").rglob("server*.log")):
        if recognises(peek(path, path.name)):
            whole, shaped = both_ways(path, 100)
            assert shaped == whole, path


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_every_variant_mixed_and_damaged(tmp_path: Path, seed: int, end: bytes) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(a_log(seed, 1500).replace(b"\n", end))
    whole, shaped = both_ways(path, 20_000)
    assert shaped == whole
    assert {record.instrument for record in whole.decodes} == {"window", "interval", "step"}
    assert whole.prefills
    assert whole.events
    assert whole.notices
    assert any(file.damaged for file in whole.files)


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_without_templates(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "server.log"
    known = ENGINES[engine]
    chosen = [known[0], *(OTHERS + known) * 3]
    path.write_text("\n".join(with_digits(line, seed) for seed, line in enumerate(chosen)))
    whole, shaped = both_ways(path, 300)
    assert shaped == whole
    assert whole.server.engine or whole.levels or whole.transfers


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_compressed(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "server.log.1"
    path.write_bytes(pack(a_log(5, 300)))
    whole, shaped = both_ways(path, 2_000)
    assert shaped == whole


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(BATCH + STATE + FORWARDS + OTHERS),
            st.integers(0, 5),
            st.sampled_from(list(TREATMENTS)),
            st.integers(0, 400),
        ),
        max_size=20,
    ),
    st.integers(1, 4000),
)
def test_any_lines_in_any_dress(tmp_path: Path, chosen: list[tuple[str, int, str, int]], size: int) -> None:
    path = tmp_path / "server.log"
    text = [
        BATCH[0],
        STATE[0],
        *(TREATMENTS[name](with_digits(line, seed), at) for line, seed, name, at in chosen),
    ]
    path.write_bytes("\n".join(text).encode("utf-8", "surrogateescape"))
    whole, shaped = both_ways(path, size)
    assert shaped == whole


def test_a_wrapped_line_across_chunks(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    wrapped = TREATMENTS["wrapped"](BATCH[2], 0)
    text = "\n".join([BATCH[0], wrapped, BATCH[1], wrapped, wrapped, BATCH[3]])
    path.write_text(text)
    for size in range(1, len(text), 15):
        whole, shaped = both_ways(path, size)
        assert shaped == whole, size


def test_shapes_beyond_the_bound_are_read_singly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(a_log(9, 300))
    monkeypatch.setattr(shapes, "MAX_SHAPES", 10)
    whole, shaped = both_ways(path)
    assert shaped == whole


def test_regular_lines_do_not_reach_the_reader_of_single_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fed: list[str] = []
    feed = SglangLog.feed

    def spy(self: SglangLog, number: int, line: str) -> None:
        fed.append(line)
        feed(self, number, line)

    monkeypatch.setattr(SglangLog, "feed", spy)
    path = tmp_path / "server.log"
    regular = [with_digits(line, 0) for line in BATCH]
    path.write_text("\n".join([BATCH[0], *[*regular, OTHERS[9], OTHERS[11]] * 20]))
    monkeypatch.setattr(log, "MANY_BYTES", 0)
    monkeypatch.setattr(lines, "CHUNK_BYTES", 100)
    monkeypatch.setattr(lines, "READ_BYTES", 50)
    run = read([path])
    assert len(run.decodes) + len(run.prefills) == 1 + 20 * len(BATCH)
    assert len(fed) <= 1 + FOLLOWING
