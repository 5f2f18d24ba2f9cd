# ruff: noqa: ISC004, E501  # lines of a log, one string each
"""A long log read many lines at a time sums up to what the same log read line by line holds."""

import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from stepline.evidence.merge import merge
from stepline.evidence.run import Run
from stepline.sources.logs import by_shape, lines
from stepline.sources.peek import peek
from stepline.sources.read import read_one_run as read
from stepline.sources.readers import log
from stepline.sources.readers.log import read_starts

VARIANTS = (
    "[{t} TP0] Decode batch. #running-req: {n}, #token: {k}, token usage: 0.{u:02d}, "
    "gen throughput (token/s): {g}, #queue-req: {q}, ",
    "[{t} DP{r} TP0 EP0] Decode batch, #running-req: {n}, #full token: {k}, full token usage: 0.{u:02d}, "
    "#swa token: 1, swa token usage: 0.06, accept len: 1.{u:02d}, cuda graph: {b}, "
    "gen throughput (token/s): {g}, #queue-req: {q}, fwd occupancy: 8{u}.5%",
    "(A pid=4, ip=10.0.0.9) [{t} DP{r} PP1 TP0] Decode batch [{k}], #running-req: {n}, #token: {k}, "
    "token usage: 0.{u:02d}, cuda graph: True, gen throughput (token/s): {g}, #queue-req: {q}",
    "{t} INFO 31223 [DP{r} TP1 mixin.py:222] Prefill batch. #new-seq: 1, #new-token: {k}, "
    "#cached-token: 7, token usage: 0.{u:02d}, #running-req: {n}, #queue-req: {q}, ",
    "[{t} TP0] Prefill batch, #new-seq: 2, #new-token: {k}, #cached-token: 0, token usage: 0.10, "
    "#running-req: {n}, #queue-req: {q}, #pending-token: 5, cuda graph: False, input throughput (token/s): {g}",
    '[{t}] INFO:     10.0.0.1:1 - "POST /generate HTTP/1.1" 200 OK',
    '[{t}] INFO:     10.0.0.1:1 - "POST /generate HTTP/1.1" 503 Service Unavailable',
    "[{t} TP0] KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_token_ratio: 0.4 -> 0.6",
    "[{t} TP0] Decode batch, #running-req: {n}, #token: nan, token usage: nan, gen throughput (token/s): "
    "0.00, #queue-req: 0",
    "[{t} TP0] Decode batch, #running-r",
    "(EngineCore_DP1 pid=9) INFO 04-09 11:17:53 [core.py:400] Iteration({k}): 0 context requests, 0 context "
    "tokens, {n} generation requests, {n} generation tokens, iteration elapsed time: 20.{u:02d} ms",
    "(APIServer pid=1) INFO 04-09 11:17:53 [loggers.py:87] Engine 000: Avg prompt throughput: 0.0 tokens/s, "
    "Avg generation throughput: {g} tokens/s, Running: {n} reqs, Waiting: {q} reqs, GPU KV cache usage: 0.2%",
)


def a_log(count: int) -> str:
    rng = random.Random(3)  # noqa: S311
    made = [
        "[2025-11-29 10:00:00] server_args=ServerArgs(model_path='m', tp_size=2)",
        "vLLM API server version 0.11",
    ]
    running = 8
    for index in range(count):
        if rng.random() < 0.1:
            running = rng.randint(1, 20)
        line = rng.choice(VARIANTS[:5] * 6 + VARIANTS)
        made.append(
            line.format(
                t=f"2025-11-29 {index // 3600:02d}:{index // 60 % 60:02d}:{index % 60:02d}",
                n=running,
                k=rng.randint(1, 10**5),
                u=rng.randint(0, 9),
                g=f"{rng.randint(1, 10**5) / 100:.2f}",
                q=rng.choice([0, 0, 3]),
                r=rng.randint(0, 2),
                b=rng.choice([True, False]),
            )
        )
    return "\n".join(made)


def both(path: Path) -> Run:
    """Both engines' records of one log."""
    return merge(read_starts(peek(path, path.name)))


def totals(run: Run) -> dict[str, Any]:
    windows: Counter[Any] = Counter()
    step_s: dict[Any, float] = defaultdict(float)
    for record in run.decodes:
        key = (record.instrument, record.dp, record.pp, record.running, record.graph, bool(record.queued))
        windows[key] += record.windows
        if record.instrument == "window" and record.tok_s:
            step_s[key] += record.windows * record.running * (record.accept_length or 1.0) / record.tok_s
        elif record.step_ms:
            step_s[key] += record.windows * record.step_ms
    admitted: Counter[Any] = Counter()
    for prefill in run.prefills:
        key = (prefill.dp, prefill.pp, prefill.graph)
        admitted[(*key, "batches")] += prefill.batches
        admitted[(*key, "sequences")] += prefill.new_sequences
        admitted[(*key, "tokens")] += prefill.new_tokens
        admitted[(*key, "cached")] += prefill.cached_tokens or 0
    return {
        "windows": dict(windows),
        "step_s": {key: pytest.approx(value) for key, value in step_s.items()},
        "admitted": dict(admitted),
        "events": Counter((event.kind, event.amount) for event in run.events),
        "damaged": [file.damaged for file in run.files],
        "server": run.server,
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    path.write_text(a_log(6_000))
    return path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MANY_BYTES", 0)
    monkeypatch.setattr(by_shape, "KEEP", 500)
    monkeypatch.setattr(lines, "CHUNK_BYTES", 1 << 14)
    monkeypatch.setattr(by_shape, "SUMMED_CHUNK_BYTES", 1 << 17)


def test_sums_are_those_of_the_single_lines(path: Path, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    thinned = both(path)
    monkeypatch.setattr(by_shape, "KEEP", 10**9)
    whole = both(path)
    assert len(thinned.decodes) < len(whole.decodes)
    assert totals(thinned) == totals(whole)
    assert thinned.files[0].note is not None
    assert whole.files[0].note is None


def test_order_holds_and_time_never_runs_back(path: Path, small: None) -> None:
    run = both(path)
    sequence = [record.seq for record in run.decodes]
    assert sequence == sorted(sequence)
    times = [
        r.time_s for r in run.decodes if r.instrument == "window" and r.time_s is not None and r.windows > 1
    ]
    assert times == sorted(times)


def valid_windows(run: Run) -> Counter[Any]:
    """Windows whose batch is that of the rank's window before, with no prefill of any rank between."""
    last: dict[Any, tuple[int, int]] = {}
    found: Counter[Any] = Counter()
    prefills = sorted(prefill.seq for prefill in run.prefills)
    at = 0
    for record in run.decodes:
        while at < len(prefills) and prefills[at] < record.seq:
            at += 1
        rank = (record.dp, record.pp)
        if record.instrument == "window" and last.get(rank) == (record.running, at):
            found[record.running] += record.windows
        last[rank] = (record.running, at)
    return found


def test_windows_that_a_step_can_be_read_from_stay_so(
    tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "[2025-11-29 10:00:00 TP0] Decode batch, #running-req: {}, #token: 5, token usage: 0.10, cuda graph: True, gen throughput (token/s): 84.20, #queue-req: 0"
    prefill = "[2025-11-29 10:00:00 TP0] Prefill batch, #new-seq: 1, #new-token: 5, #cached-token: 0, token usage: 0.1, #running-req: 1, #queue-req: 0"
    batches = [1, 8, 16, 8, 32] * 8
    text = "\n".join(part for n in batches for part in (prefill, *[line.format(n)] * 100))
    (tmp_path / "server.log").write_text(text)
    thinned = valid_windows(read([tmp_path]))
    monkeypatch.setattr(by_shape, "KEEP", 10**9)
    whole = valid_windows(read([tmp_path]))
    assert set(thinned) == set(whole)
    for running, count in whole.items():
        assert 0.95 * count <= thinned[running] <= count
