"""Comparisons of real captures: planted faults against their healthy twins, and the founding case before and after."""

import tomllib
from functools import cache
from importlib import resources
from pathlib import Path

import pytest

from stepline.errors import UsageError
from stepline.findings.compare import compare
from stepline.findings.ledger import ledger
from stepline.model.change.speedup import T as SPEEDUP
from stepline.model.change.throughput_pairs import rate_pairs
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Picture, Setup
from stepline.sources.read import read_one_run as read
from stepline.tasks.picture import picture_of
from stepline.tasks.setup import SetupRequest
from tests.schemas import follow_schema

DATA = Path(__file__).parents[1] / "data"
TWINS = DATA / "h200-sglang-2"
RECORDED = Path(str(resources.files("stepline.lab").joinpath("recorded")))
EVIDENCE = ("server.log", "server_info.json", "metrics.txt", "gpm.csv", "sweep.json", "config.json")
FAULTS = {
    "graph_cap8": ("H303", 2.9),
    "kv_retract": ("S202", 2.43),
    "kv_small": ("S202", 1.82),
    "kv_splits1_24k": (None, 5.3),
    "moe_cap16": ("S201", 1.87),
    "overlap_off": ("H301", 1.28),
    "prefill_chunk128": ("S204", 153),
    "spec_ngram": ("S205", 49.6),
}
"""Fault: the finding that goes away, and the closed-loop gain at its heaviest level (truth.toml)."""


@cache
def capture(name: str) -> Picture:
    folder = {"healthy": DATA / "h200-sglang" / "healthy", "cap8": RECORDED / "batch-cap"}.get(
        name, TWINS / name
    )
    return assess(read([folder / file for file in EVIDENCE if (folder / file).exists()]), Setup(gpu="h200"))


def twin_of(name: str) -> str:
    return tomllib.loads((TWINS / name / "truth.toml").read_text())["twin"]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_removed_is_better_and_a_fault_planted_worse(name):
    code, gain = FAULTS[name]
    fault, twin = [capture(name)], [capture(twin_of(name))]
    removed, planted = compare(fault, twin), compare(twin, fault)
    assert (removed.verdict, planted.verdict) == ("better", "worse")
    follow_schema(removed)
    follow_schema(planted)
    heaviest = max((line for line in removed.lines if line.measure == "rate"), key=lambda line: line.level)
    heaviest = [x for x in removed.lines if x.measure == "rate" and x.level == heaviest.level][-1]
    assert heaviest.speedup == pytest.approx(gain, rel=0.01)
    if code is not None:
        assert code in removed.gone
        assert code in planted.appeared


@pytest.mark.parametrize("name", FAULTS)
def test_swapped_sides_give_reciprocal_lines(name):
    fault, twin = [capture(name)], [capture(twin_of(name))]
    back = {(line.measure, line.at): line for line in compare(twin, fault).lines}
    for line in compare(fault, twin).lines:
        other = back.get((line.measure, line.at))
        if other is not None and line.context is None:
            assert line.speedup * other.speedup == pytest.approx(1)
            assert line.interval.low * other.interval.high == pytest.approx(1)


@pytest.mark.parametrize("name", ["graph_cap8", "kv_small", "overlap_off"])
def test_the_promise_of_the_setting_that_changed_holds(name):
    result = compare([capture(name)], [capture("healthy_8b")])
    (promise,) = result.predictions
    assert promise.code == FAULTS[name][0]
    assert promise.inside is True
    assert "changed" in promise.because


def test_two_servers_that_lose_nothing_are_the_same():
    result = compare([capture("dense_eager")], [capture("dense_graph")])
    assert result.verdict == "same"
    assert {line.verdict for line in result.lines} == {"same"}
    assert "decode_graphs" in [knob.name for knob in result.knobs]


def test_equal_levels_of_unlike_servers_are_the_same_and_the_rest_decides():
    result = compare([capture("healthy")], [capture("cap8")])
    by_level = {line.at: line.verdict for line in result.lines}
    assert by_level["8 running"] == by_level["C = 8"] == "same"
    assert (result.verdict, by_level["C = 64"]) == ("worse", "worse")


def test_cached_prompts_against_fresh_ones_are_refused():
    with pytest.raises(
        UsageError, match=r"97 % of the prompt tokens came from the prefix cache before and 0 %"
    ):
        compare([capture("shared_prefix")], [capture("healthy_8b")])


def test_another_model_and_another_load_are_refused():
    with pytest.raises(UsageError, match=r"the model is models/llama405b_5l before and models/llama8b after"):
        compare([capture("dense_graph")], [capture("healthy_8b")])
    with pytest.raises(UsageError, match="prompts have 256 tokens before and 512 after"):
        compare([capture("healthy")], [capture("healthy_8b")])


def test_the_spread_between_starts_is_what_the_captures_show():
    """Levels of servers that differ in nothing that acts there: what RUN_SPREAD was taken from."""
    alike = {
        ("healthy", "cap8"): (1, 8),
        ("healthy_8b", "graph_cap8"): (4,),
        ("healthy_8b", "kv_small"): (16,),
        ("healthy_8b", "shared_prefix"): (1,),
        ("healthy_long_out", "kv_retract"): (8,),
        ("moe_healthy", "moe_cap16"): (8, 16),
        ("dense_graph", "dense_eager"): (1, 16, 48),
    }
    squares = [
        (pair.after[0].log_speed - pair.before[0].log_speed) ** 2
        for (one, other), levels in alike.items()
        for pair in rate_pairs([capture(one)], [capture(other)]).pairs
        if pair.level in levels
    ]
    assert len(squares) == 11
    assert (sum(squares) / len(squares) / 2) ** 0.5 == pytest.approx(SPEEDUP.run_spread, rel=0.05)


@pytest.fixture(scope="module")
def founding(tmp_path_factory):
    """The founding case before and after, each with its trimmed trace."""
    sides = []
    for name, folder in (
        ("v4_torch_1m", RECORDED / "founding-case"),
        ("v4_torch_8k", DATA / "h200-sglang" / "v4_torch_8k"),
    ):
        side = tmp_path_factory.mktemp(name)
        for file in (*folder.iterdir(), DATA / "traces" / f"{name}.json.gz"):
            (side / file.name).symlink_to(file)
        sides.append(picture_of(side, SetupRequest(gpu="h200")))
    return sides


def test_the_founding_case_is_better_on_decode_windows(founding):
    result = compare([founding[0]], [founding[1]])
    follow_schema(result)
    assert result.verdict == "better"
    lines = {line.at: line for line in result.lines}
    assert all(line.instrument.startswith("decode windows") for line in lines.values())
    assert lines["16 running"].speedup == pytest.approx(4.35, abs=0.05)
    assert lines["32 running"].speedup == pytest.approx(9.2, abs=0.1)
    assert any("C = 32: 5,813 tok/s, no undisturbed rate before" in text for text in result.left_out)


def test_the_founding_case_shows_promise_beside_measurement_and_the_host_as_next(founding):
    result = compare([founding[0]], [founding[1]])
    assert [knob.name for knob in result.knobs] == ["context_length"]
    rate, gpu = result.predictions
    assert (rate.code, gpu.code) == ("K401", "K401")
    assert rate.inside is True
    assert gpu.predicted == pytest.approx(2.03, abs=0.02)
    assert gpu.measured == pytest.approx(2.02, abs=0.02)
    assert result.binds_next.measured.startswith("H301 host-bound")
    assert (result.gone, result.appeared) == (("K401",), ("H301",))


def test_the_founding_case_names_the_component_that_shrank(founding):
    result = compare([founding[0]], [founding[1]])
    largest = result.accounting[0]
    assert largest.component == "indexer"
    assert largest.change_ms == pytest.approx(-11.7, abs=0.2)
    assert result.accounting[-1].component == "host gap"


def test_an_unsteady_server_against_itself_is_inconclusive():
    nograph = assess(read([DATA / "h200-sglang" / "nograph"]), Setup(gpu="h200"))
    result = compare([nograph], [nograph])
    assert result.verdict == "inconclusive"
    assert result.more_runs is None  # windows of a level scatter by 8 to 18 %: no hundred runs would do
    assert "anywhere from 0.7" in result.sentence


def test_the_ledger_of_every_twin_follows_its_schema():
    names = sorted({*FAULTS, *map(twin_of, FAULTS)})
    found = ledger([(name, capture(name)) for name in names], [])
    follow_schema(found)
    assert len(found.entries) >= 5
    assert {cause.code for cause in found.confirmed} >= {"S202"}
