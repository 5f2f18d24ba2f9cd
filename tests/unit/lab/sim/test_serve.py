import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import stepline
from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.lab.real import http
from stepline.lab.real.load import run_level
from stepline.lab.real.matrix import Level
from stepline.lab.sim.faults import find_fault
from stepline.lab.sim.serve import serve
from stepline.lab.sim.start import start

MODEL = "llama-3.1-8b"


async def drive(fault: str, log: Path, levels: tuple[int, ...], speed: float = 4.0) -> list[dict[str, Any]]:
    """Serve in this event loop, drive closed-loop levels, ask the information routes, stop."""
    planted, strength = find_fault(fault)
    started = start(
        "sglang", MODEL, find_model(MODEL).config, find_gpu("h200"), fault=planted, strength=strength, seed=1
    )
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    with log.open("w") as file:
        server = asyncio.create_task(serve(started, 0, file.write, speed=speed, ready=bound.set_result))
        port = await bound
        rows = []
        for seed, concurrency in enumerate(levels):
            level = Level(concurrency=concurrency, input_tokens=128, output_tokens=64, seconds=1.0)
            rows.append(await run_level(port, level, seed=seed, vocab=1000))
        for route in ("metrics", "server_info"):
            (log.parent / f"{route}.txt").write_bytes(await http.call(port, f"/{route}"))
        server.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await server
    return rows


def test_a_served_cap_shows_in_log_metrics_and_settings_and_loses_no_token(tmp_path: Path) -> None:
    rows = asyncio.run(drive("S201:3", tmp_path / "server.log", (2, 12)))
    assert all(row["failed"] == 0 and row["requests"] > 0 for row in rows)
    run = stepline.read([tmp_path])
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
    from_log = stepline.read([tmp_path / "server.log"]).server
    from_route = stepline.read([tmp_path / "server_info.txt"]).server
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
