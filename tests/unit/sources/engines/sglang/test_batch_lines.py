# an engine's lines are as long as they are
"""Every variant of the batch lines, made from the templates of 0.4.1 to 0.5.23."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.evidence.run import Run
from stepline.sources.engines.sglang.log import SglangLog

T = 1_764_433_914.0
"""2025-11-29 16:31:54 UTC."""


def read(*lines: str) -> Run:
    log = SglangLog("server.log")
    for number, line in enumerate(lines, start=1):
        log.feed(number, line)
    return log.finish()


@dataclass
class Variant:
    line: str
    wants: dict[str, object] = field(default_factory=dict)


DECODES = {
    "0.4.1: no graph field": Variant(
        "[2025-11-29 16:31:54 TP0] Decode batch. #running-req: 1, #token: 234, token usage: 0.00, "
        "gen throughput (token/s): 144.17, #queue-req: 0",
        {"time_s": T, "graph": None, "pool_tokens": 234, "tok_s": 144.17, "queued": 0, "dp": None},
    ),
    "0.4.4: graph": Variant(
        "[2025-11-29 16:31:54 TP0] Decode batch. #running-req: 1, #token: 234, token usage: 0.02, "
        "cuda graph: False, gen throughput (token/s): 144.17, #queue-req: 3",
        {"graph": False, "pool_usage": 0.02, "queued": 3},
    ),
    "0.4.10: trailing comma and space": Variant(
        "[2025-11-29 16:31:54] Decode batch. #running-req: 1, #token: 177, token usage: 0.00, "
        "cuda graph: True, gen throughput (token/s): 84.20, #queue-req: 0, ",
        {"graph": True, "tok_s": 84.2},
    ),
    "0.4.10: accept len, PD decode, retracted": Variant(
        "[2025-11-29 16:31:54 DP3 TP3 EP3] Decode batch. #running-req: 32, #token: 157952, token usage: 0.21, "
        "accept len: 1.93, pre-allocated usage: 0.05, #retracted-req: 2, cuda graph: True, "
        "gen throughput (token/s): 693.45, #queue-req: 0, ",
        {"dp": 3, "accept_length": 1.93, "retracted": 2, "running": 32},
    ),
    "0.5.3: accept rate, prealloc and transfer": Variant(
        "[2025-11-29 16:31:54 DP0 TP0] Decode batch. #running-req: 8, #token: 100, token usage: 0.21, "
        "accept len: 2.50, accept rate: 0.62, pre-allocated usage: 0.05, #prealloc-req: 4, #transfer-req: 7, "
        "#retracted-req: 0, cuda graph: True, gen throughput (token/s): 10.00, #queue-req: 0, ",
        {"accept_rate": 0.62, "preallocated": 4, "transferring": 7},
    ),
    "0.5.4: comma": Variant(
        "[2025-11-29 16:31:54 TP0] Decode batch, #running-req: 8, #token: 100, token usage: 0.21, "
        "cuda graph: True, gen throughput (token/s): 10.00, #queue-req: 0, ",
    ),
    "0.5.5: iterations, milliseconds, other rank order": Variant(
        "[2025-11-29 16:31:54.250 DP1 PP2 TP0 EP0] Decode batch [1234], #running-req: 8, #token: 100, "
        "token usage: 0.21, cuda graph: True, gen throughput (token/s): 10.00, #queue-req: 0, ",
        {"time_s": T + 0.25, "dp": 1, "pp": 2},
    ),
    "0.5.9: context-parallel tags": Variant(
        "[2025-11-29 16:31:54 DP1 PP0 ATTN_CP0 MOE_DP3 TP0 EP0] Decode batch, #running-req: 8, #token: 100, "
        "token usage: 0.21, npu graph: True, gen throughput (token/s): 10.00, #queue-req: 0",
        {"dp": 1, "pp": 0, "graph": True},
    ),
    "SWA": Variant(
        "[2025-11-29 16:31:54 TP0] Decode batch, #running-req: 4, #full token: 2642688, full token usage: 1.00, "
        "#swa token: 14592, swa token usage: 0.06, cuda graph: True, gen throughput (token/s): 429.34, "
        "#queue-req: 3",
        {"pool_tokens": 2642688, "pool_usage": 1.0},
    ),
    "SSM": Variant(
        "[2025-11-29 16:31:54 TP0] Decode batch, #running-req: 4, #full token: 500, full token usage: 0.10, "
        "mamba num: 12, mamba usage: 0.75, cuda graph: True, gen throughput (token/s): 1.00, #queue-req: 0",
        {"pool_tokens": 500, "pool_usage": 0.75},
    ),
    "SWA and SSM, 0.5.12": Variant(
        "[2025-11-29 16:31:54 TP0] Decode batch, #running-req: 4, #full token: 500, full token usage: 0.10, "
        "#swa token: 9, swa token usage: 0.90, mamba num: 12, mamba usage: 0.75, cuda graph: True, "
        "gen throughput (token/s): 1.00, #queue-req: 0",
        {"pool_usage": 0.9},
    ),
    "HiSparse": Variant(
        "[2025-11-29 16:31:54 TP0] Decode batch, #running-req: 4, #token: 500, token usage: 0.10, "
        "#gpu token: 200, #cpu token: 300, cuda graph: True, gen throughput (token/s): 1.00, #queue-req: 0",
        {"pool_tokens": 500},
    ),
    "0.5.23: everything": Variant(
        "[2025-11-29 16:31:54 TP0] Decode batch [9], #running-req: 4, #token: 500, token usage: 0.10, "
        "accept len: 3.10, accept rate: 0.70, cap len: 4.00, block accept len: 2.00, pre-allocated usage: 0.00, "
        "#prealloc-req: 0, #transfer-req: 1, #host-receive-req: 2, #retracted-req: 0, waiting-image-req: 0, "
        "cuda graph: True, gen throughput (token/s): 1234.56, #queue-req: 5, "
        "est. decode TFLOPS/s (per GPU): 1.20, est. read BW (GB/s per GPU): 3000.00, "
        "est. write BW (GB/s per GPU): 2.00, fwd occupancy: 88.50%, fwd+idle occupancy: 99.00%",
        {"accept_length": 3.1, "forward_busy": 0.885, "tok_s": 1234.56, "queued": 5, "transferring": 1},
    ),
    "not a number where nothing was measured": Variant(
        "[2025-11-29 16:31:54 TP0] Decode batch, #running-req: 4, #token: 500, token usage: nan, "
        "cuda graph: True, gen throughput (token/s): inf, #queue-req: 0, fwd occupancy: nan%",
        {"pool_usage": None, "tok_s": None, "forward_busy": None},
    ),
    "Ray actor": Variant(
        "(SchedulerActor pid=4242, ip=10.0.0.9) [2025-11-29 16:31:54 DP2 TP4] Decode batch, #running-req: 4, "
        "#token: 5, token usage: 0.10, cuda graph: True, gen throughput (token/s): 1.00, #queue-req: 0",
        {"time_s": T, "dp": 2},
    ),
    "launcher's own prefix": Variant(
        "2025-11-29 16:31:54 INFO 31223 [DP3 TP3 EP3 scheduler_metrics_mixin.py:222] Decode batch. "
        "#running-req: 32, #token: 5, token usage: 0.21, cuda graph: True, gen throughput (token/s): 693.45, "
        "#queue-req: 0",
        {"time_s": T, "dp": 3},
    ),
    "collector's stamp before the engine's": Variant(
        "2025-11-29T18:31:55.123456789Z stderr F [2025-11-29 16:31:54 TP0] Decode batch, #running-req: 4, "
        "#token: 5, token usage: 0.10, cuda graph: True, gen throughput (token/s): 1.00, #queue-req: 0",
        {"time_s": T},
    ),
    "no time stamp": Variant(
        "Decode batch, #running-req: 4, #token: 5, token usage: 0.10, cuda graph: True, "
        "gen throughput (token/s): 1.00, #queue-req: 0",
        {"time_s": None},
    ),
}


@pytest.mark.parametrize("name", DECODES)
def test_decode_variant(name: str) -> None:
    variant = DECODES[name]
    run = read(variant.line)
    assert len(run.decodes) == 1
    assert run.prefills == ()
    for attribute, value in variant.wants.items():
        assert getattr(run.decodes[0], attribute) == value, attribute


PREFILLS = {
    "0.4.1: cache hit rate": Variant(
        "[2025-11-29 16:31:54 TP0] Prefill batch. #new-seq: 1, #new-token: 103, #cached-token: 1, "
        "cache hit rate: 12.50%, token usage: 0.30, #running-req: 2, #queue-req: 5",
        {"new_sequences": 1, "new_tokens": 103, "cached_tokens": 1, "pool_usage": 0.3, "queued": 5},
    ),
    "0.5.2: PD prefill": Variant(
        "[2025-11-29 16:31:54 DP8 TP8] Prefill batch. #new-seq: 7, #new-token: 241, #cached-token: 0, "
        "token usage: 0.07, #running-req: 0, #unbootstrapped-req: 375, #queue-req: 0, #transferring-req: 166 ",
        {"bootstrapping": 375, "inflight": 166, "dp": 8},
    ),
    "0.5.3: PD prefill": Variant(
        "[2025-11-29 16:31:54 TP0] Prefill batch. #new-seq: 7, #new-token: 241, #cached-token: 0, token usage: "
        "0.07, #running-req: 0, #queue-req: 0, #prealloc-req: 12, #inflight-req: 16, "
        "input throughput (token/s): 12.50, ",
        {"bootstrapping": 12, "inflight": 16, "tok_s": 12.5},
    ),
    "0.5.23": Variant(
        "[2025-11-29 16:31:54 TP0] Prefill batch [7], #new-seq: 1, #new-token: 8192, #cached-token: 0, "
        "full token usage: 0.87, swa token usage: 0.10, #running-req: 3, #queue-req: 3, #pending-token: 583214, "
        "#replay-token: 0, #bootstrap-req: 1, #inflight-req: 2, #optimistic-req: 0, cuda graph: False, "
        "input throughput (token/s): 21767.68, est. prefill TFLOPS/s (per GPU): 300.00, fwd occupancy: 50.00%",
        {"pending_tokens": 583214, "graph": False, "bootstrapping": 1, "inflight": 2, "tok_s": 21767.68},
    ),
}


@pytest.mark.parametrize("name", PREFILLS)
def test_prefill_variant(name: str) -> None:
    variant = PREFILLS[name]
    run = read(variant.line)
    assert len(run.prefills) == 1
    assert run.decodes == ()
    for attribute, value in variant.wants.items():
        assert getattr(run.prefills[0], attribute) == value, attribute


def test_each_dp_rank_keeps_its_own_record() -> None:
    line = "[2025-11-29 16:31:54 DP{} TP0] Decode batch, #running-req: {}, #token: 5, token usage: 0.10, "
    line += "cuda graph: True, gen throughput (token/s): 1.00, #queue-req: 0"
    run = read(line.format(0, 3), line.format(1, 5), line.format(0, 4))
    assert [(record.dp, record.running) for record in run.decodes] == [(0, 3), (1, 5), (0, 4)]
    assert sorted(record.seq for record in run.decodes) == [record.seq for record in run.decodes]


WHOLE = DECODES["0.5.4: comma"].line


@pytest.mark.parametrize("width", [60, 80, 81, 97, 120])
def test_a_line_that_a_terminal_wrapped_is_one_record(width: int) -> None:
    pieces = [WHOLE[at : at + width] for at in range(0, len(WHOLE), width)]
    run = read(*pieces, "[2025-11-29 16:31:55] The server is fired up and ready to roll!")
    assert [(record.running, record.tok_s, record.queued) for record in run.decodes] == [(8, 10.0, 0)]
    assert [event.kind for event in run.events] == ["ready"]


def test_two_messages_on_one_line_are_two_records() -> None:
    assert len(read(WHOLE + " " + WHOLE).decodes) == 2


def test_a_line_cut_within_a_number_does_not_yield_that_number() -> None:
    cut = WHOLE[: WHOLE.index("100") + 1]
    assert cut.endswith("#token: 1")
    assert read(cut).decodes[0].pool_tokens is None

    run = read("", "[2025-11-29 16:31:54 TP0] Decode batch, #runn", WHOLE, "Decode batch. #token: x", WHOLE)
    assert len(run.decodes) == 2
    assert len(run.doubts) == 1
    assert "2 damaged" in run.doubts[0].text
    assert "server.log:2" in run.doubts[0].text


counts = st.integers(0, 10**9)
shares = st.integers(0, 100).map(lambda cents: cents / 100)
rates = st.integers(0, 10**8).map(lambda cents: cents / 100)


@given(
    running=counts,
    tokens=counts,
    usage=shares,
    queue=counts,
    rate=rates,
    graph=st.booleans(),
    accept=st.none() | st.integers(100, 900).map(lambda cents: cents / 100),
    dp=st.none() | st.integers(0, 255),
    iteration=st.none() | st.integers(0, 10**7),
    dot=st.booleans(),
)
def test_a_line_made_from_values_reads_back_as_those_values(
    *,
    running: int,
    tokens: int,
    usage: float,
    queue: int,
    rate: float,
    graph: bool,
    accept: float | None,
    dp: int | None,
    iteration: int | None,
    dot: bool,
) -> None:
    rank = "" if dp is None else f" DP{dp} TP0"
    head = "." if dot else "," if iteration is None else f" [{iteration}],"
    spec = "" if accept is None else f"accept len: {accept:.2f}, "
    line = (
        f"[2025-11-29 16:31:54{rank}] Decode batch{head} #running-req: {running}, #token: {tokens}, "
        f"token usage: {usage:.2f}, {spec}cuda graph: {graph}, gen throughput (token/s): {rate:.2f}, "
        f"#queue-req: {queue}"
    )
    record = read(line).decodes[0]
    assert (record.running, record.pool_tokens, record.pool_usage) == (running, tokens, usage)
    assert (record.queued, record.tok_s, record.graph) == (queue, rate, graph)
    assert (record.accept_length, record.dp, record.time_s) == (accept, dp, T)


@given(
    st.lists(st.text() | st.sampled_from(["Decode batch, ", "#running-req: 3", WHOLE[:70], "\x1b[1m", "\r"]))
)
def test_no_text_raises(lines: list[str]) -> None:
    read(*lines)


@given(st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE)), st.text(max_size=5))
def test_no_damage_within_a_line_raises(start: int, end: int, put: str) -> None:
    read(WHOLE[:start] + put + WHOLE[end:], WHOLE)
