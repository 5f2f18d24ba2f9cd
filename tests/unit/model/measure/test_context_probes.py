"""A level at another context tells the slope in context and nothing about the load."""

import msgspec
import pytest

from stepline.evidence.load import LoadLevel
from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin, Sourced
from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport
from stepline.evidence.server import ServerFacts
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Setup
from stepline.model.signs.context_law import law_at_load

CLIENT = Origin("client.jsonl")
CONTEXT_MS = 0.5
"""Of a step, for each further thousand tokens of all eight."""


def driven(streams: int, prompt: int, start_s: float) -> tuple[LoadLevel, list[DecodeReport], EngineMetrics]:
    """Ten seconds of a server whose step grows with batch and context, as a recording holds them."""
    step_ms = 5 + 0.1 * streams + CONTEXT_MS * streams / 8 * prompt / 1000
    tok_s = 1000 * streams / step_ms
    level = LoadLevel(
        origin=CLIENT,
        tool="stepline",
        concurrency=streams,
        tok_s=0.9 * tok_s,
        tpot_ms=1.02 * step_ms,
        ttft_ms=30.0,
        decoding=streams,
        requests=200,
        duration_s=10.0,
        start_s=start_s,
        end_s=start_s + 10,
        input_tokens=prompt,
        output_tokens=192,
    )
    reports = [
        DecodeReport(
            seq=n,
            origin=CLIENT,
            time_s=start_s + n,
            running=streams,
            pool_tokens=streams * (prompt + 100),
            tok_s=tok_s,
            instrument="interval",
            prefill_tok_s=0.0,
        )
        for n in range(3, 11)
    ]
    scrape = EngineMetrics(
        origin=Origin("metrics.txt"),
        time_s=start_s + 5,
        running=streams,
        live_tokens=streams * (prompt + 100),
    )
    return level, reports, scrape


def recorded(*levels: tuple[int, int]) -> Run:
    """Levels of streams and prompt tokens, one after the other, on a server with pages of 16 tokens."""
    parts = [driven(streams, prompt, 1_800_000_000.0 + 20 * n) for n, (streams, prompt) in enumerate(levels)]
    return Run(
        server=ServerFacts(page_tokens=Sourced(16, Origin("server_info.json"))),
        levels=tuple(level for level, _, _ in parts),
        stretches=tuple(report for _, reports, _ in parts for report in reports),
        metrics=tuple(scrape for _, _, scrape in parts),
    )


@pytest.mark.parametrize("levels", [[(1, 512), (8, 512)], [(8, 512)]])
@pytest.mark.parametrize("other", [85, 3072])
def test_load_step_and_context_are_those_without_the_probe(levels, other):
    plain = assess(recorded(*levels), Setup())
    probed = assess(recorded(*levels, (8, other)), Setup())
    assert probed.load == plain.load
    assert probed.step == plain.step
    assert probed.law == plain.law
    assert probed.context == plain.context
    assert [level.input_tokens for level in probed.levels] == [512] * len(levels)


def test_the_probe_gives_the_slope_in_context():
    law = law_at_load(assess(recorded((1, 512), (8, 512), (8, 3072)), Setup()))
    assert law is not None
    assert law.instrument == "streams of one batch (client)"
    assert law.per_ktoken_ms == pytest.approx(CONTEXT_MS, rel=0.01)


def test_levels_that_another_tool_measured_are_all_loads():
    run = recorded((8, 512), (8, 3072))
    levels = tuple(msgspec.structs.replace(level, tool="sglang") for level in run.levels)
    picture = assess(msgspec.structs.replace(run, levels=levels), Setup())
    assert len(picture.levels) == 2
    assert picture.probed == ()


def test_streams_seen_from_outside_are_no_steps_while_others_send_prompts():
    run = recorded((1, 512), (8, 512))
    own = assess(run, Setup())
    assert own.step.instrument == "streams of one batch (client)"
    crowd = (*run.metrics[:-1], msgspec.structs.replace(run.metrics[-1], running=9))
    assert (
        assess(msgspec.structs.replace(run, metrics=crowd), Setup()).step.instrument
        != "streams of one batch (client)"
    )
