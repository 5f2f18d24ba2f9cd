import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

import stepline
from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.lab.sim.faults import find_fault
from stepline.lab.sim.serve import serve
from stepline.lab.sim.start import Started, start
from stepline.lab.sim.world import Work
from stepline.sources.engines.sglang.dialect import NativeGenerate
from stepline.sources.load.drive import run_level
from stepline.sources.load.level import Address, LevelPlan, LevelResult
from stepline.tasks.traces import TraceRequest, summarise
from tests.unit.lab.sim import http

MODEL = "llama-3.1-8b"
T = TypeVar("T")


def begin(engine: str, fault: str, tp: int = 1, **changes: Any) -> Started:
    planted, strength = find_fault(fault)
    config, gpu = find_model(MODEL).config, find_gpu("h200")
    return start(engine, MODEL, config, gpu, fault=planted, strength=strength, seed=1, tp=tp, changes=changes)


async def drive(fault: str, log: Path, levels: tuple[int, ...], speed: float = 4.0) -> list[LevelResult]:
    """Serve in this event loop, drive closed-loop levels, ask the information routes, stop."""
    started = begin("sglang", fault)
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    with log.open("w") as file:
        server = asyncio.create_task(serve(started, 0, file.write, speed=speed, ready=bound.set_result))
        port = await bound
        address, results = Address(host="127.0.0.1", port=port), []
        for concurrency in levels:
            plan = LevelPlan(concurrency=concurrency, input_tokens=128, output_tokens=64, seconds=1.0)
            results.append(await run_level(address, NativeGenerate(), plan))
        for route in ("metrics", "server_info"):
            (log.parent / f"{route}.txt").write_bytes(await http.call(port, f"/{route}"))
        server.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await server
    return results


def test_a_served_cap_shows_in_log_metrics_and_settings_and_loses_no_token(tmp_path: Path) -> None:
    results = asyncio.run(drive("S201:3", tmp_path / "server.log", (2, 12)))
    assert all(result.level.failed == 0 and result.level.requests for result in results)
    run = stepline.read([tmp_path]).runs[0]
    assert not run.doubts
    assert all(file.damaged == 0 and file.kind for file in run.files)
    assert run.server.max_running is not None
    assert run.server.max_running.value == 4
    assert max(report.running or 0 for report in run.decodes) == 4
    assert max(report.queued or 0 for report in run.decodes) >= 4
    assert run.metrics[0].decode_tokens is not None
    assert run.metrics[0].decode_eager_passes is None  # never ran eagerly: no sample, not zero


def test_the_log_tells_every_setting_that_the_information_route_tells(tmp_path: Path) -> None:
    asyncio.run(drive("H303:1", tmp_path / "server.log", (1,)))
    from_log = stepline.read(tmp_path / "server.log").runs[0].server
    from_route = stepline.read(tmp_path / "server_info.txt").runs[0].server
    for name in (
        "model",
        "max_running",
        "kv_capacity_tokens",
        "decode_graph_sizes",
        "tp",
        "chunked_prefill_tokens",
    ):
        told, asked = getattr(from_log, name), getattr(from_route, name)
        assert told is not None
        assert asked is not None
        assert told.value == asked.value, name
    assert from_log.decode_graph_sizes is not None
    assert max(from_log.decode_graph_sizes.value) == 24


def test_streams_count_as_the_engine_does(tmp_path: Path) -> None:
    async def ask() -> tuple[list[dict[str, Any]], bytes]:
        fault, strength = find_fault("healthy")
        started = start(
            "sglang",
            MODEL,
            find_model(MODEL).config,
            find_gpu("h200"),
            fault=fault,
            strength=strength,
            seed=1,
        )
        bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        server = asyncio.create_task(serve(started, 0, lambda _: None, speed=20, ready=bound.set_result))
        port = await bound
        body = {"prompt": "a few words", "max_tokens": 5, "stream": True}
        options = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
        streamed = await http.call(port, "/v1/completions", body | options)
        whole = await http.call(
            port, "/generate", {"input_ids": [1] * 40, "sampling_params": {"max_new_tokens": 7}}
        )
        server.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await server
        events = [line[6:] for line in streamed.decode().splitlines() if line.startswith("data: {")]
        return [json.loads(event) for event in events], whole

    events, whole = asyncio.run(ask())
    assert [event["usage"]["completion_tokens"] for event in events] == [1, 2, 3, 4, 5, 5]
    assert events[-1]["choices"] == []
    meta = json.loads(whole)["meta_info"]
    assert (meta["prompt_tokens"], meta["completion_tokens"], meta["cached_tokens"]) == (40, 7, 0)


def served(engine: str, fault: str, asks: Callable[[int], Coroutine[Any, Any, T]], **changes: Any) -> T:
    """What `asks` returns of a server on the port it is given, at twenty times real time."""

    async def main() -> T:
        started = begin(engine, fault, tp=2, **changes)
        bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        server = asyncio.create_task(serve(started, 0, lambda _: None, speed=20, ready=bound.set_result))
        try:
            return await asks(await bound)
        finally:
            server.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await server

    return asyncio.run(main())


def test_vllm_streams_count_in_ids_and_usage() -> None:
    async def ask(port: int) -> bytes:
        body = {"prompt": [1, 2, 3], "max_tokens": 4, "stream": True, "return_token_ids": True}
        options = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
        return await http.call(port, "/v1/completions", body | options)

    events = [
        json.loads(line[6:])
        for line in served("vllm", "healthy", ask).decode().splitlines()
        if line[6:7] == "{"
    ]
    chunks = [event["choices"][0] for event in events if event["choices"]]
    assert [len(chunk["token_ids"]) for chunk in chunks] == [1, 1, 1, 1]
    assert chunks[0]["prompt_token_ids"] == [1, 2, 3]
    assert [event["usage"]["completion_tokens"] for event in events] == [1, 2, 3, 4, 4]
    assert [chunk["finish_reason"] for chunk in chunks] == [None, None, None, "length"]


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_bad_requests_are_refused_and_the_server_goes_on(engine: str) -> None:
    path = "/generate" if engine == "sglang" else "/v1/completions"
    good = {"input_ids": [1], "sampling_params": {"max_new_tokens": 2}, "prompt": [1], "max_tokens": 2}

    async def ask(port: int) -> list[str]:
        said = []
        for bad in ({}, {"input_ids": "x", "prompt": {"a": 1}}, {**good, "max_tokens": 10**9} | TOO_LONG):
            try:
                said.append((await http.call(port, path, bad)).decode())
            except ConnectionError as e:
                said.append(str(e))
        assert b"completion_tokens" in await http.call(port, path, good)
        return said

    said = served(engine, "healthy", ask)
    assert all("answered 400" in each for each in said[1:])


TOO_LONG = {"sampling_params": {"max_new_tokens": 10**9}}


def test_a_profile_is_written_for_every_rank_and_reads_as_the_steps_were(tmp_path: Path) -> None:
    bounded, open_ended = tmp_path / "bounded", tmp_path / "open"

    async def hold(port: int) -> None:
        body = {"input_ids": list(range(600)), "sampling_params": {"max_new_tokens": 8000}, "stream": True}
        async for _ in http.generate(port, body):
            pass

    async def ask(port: int) -> None:
        holds = [asyncio.create_task(hold(port)) for _ in range(4)]
        await asyncio.sleep(0.1)
        await http.call(port, "/start_profile", {"output_dir": str(open_ended)})
        with pytest.raises(ConnectionError, match="already in progress"):
            await http.call(port, "/start_profile", {"output_dir": str(open_ended)})
        await asyncio.sleep(0.02)
        await http.call(port, "/stop_profile", {})
        await http.call(port, "/start_profile", {"output_dir": str(bounded), "num_steps": 5})
        deadline = time.monotonic() + 5
        while len(list(bounded.glob("*.gz"))) < 2 and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        for each in holds:
            each.cancel()
        await asyncio.gather(*holds, return_exceptions=True)

    served("sglang", "healthy", ask)
    assert len(list(open_ended.iterdir())) == 2
    names = sorted(path.name.split("-", 1)[1] for path in bounded.iterdir())
    assert names == ["TP-0.trace.json.gz", "TP-1.trace.json.gz"]
    summary = summarise(TraceRequest(paths=tuple(bounded.iterdir()), gpu="h200"))
    group = summary.group()
    assert group is not None
    assert (group.batch, group.steps) == (4, 5)
    one = begin("sglang", "healthy", tp=2)
    cost = one.scheduler.world.price(Work(decoding=4, live_tokens=4 * 700))
    assert group.busy_ms == pytest.approx(1e3 * cost.gpu_s, rel=0.06)  # gaps between kernels are not busy


def test_vllm_profiles_only_when_it_was_launched_to(tmp_path: Path) -> None:
    async def ask(port: int) -> None:
        await http.call(port, "/start_profile", {})
        await http.call(port, "/v1/completions", {"prompt": [1] * 20, "max_tokens": 8})
        await http.call(port, "/stop_profile", {})

    served("vllm", "healthy", ask, trace_folder=str(tmp_path))
    assert len(list(tmp_path.glob("dp0_pp0_tp?_dcp0_ep0_rank?.*.pt.trace.json.gz"))) == 2
    with pytest.raises(ConnectionError, match="404"):
        served("vllm", "healthy", ask)
