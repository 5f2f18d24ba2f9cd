"""Servers on one H200, each diagnosed live by this project (SGLang 0.5.16, random weights): what it kept of them.

The faults are single flags (`--max-running-requests 8`, `--disable-cuda-graph`, `--cuda-graph-max-bs 8`,
`--triton-attention-num-kv-splits 1` with prompts of 24,000 tokens; the founding case's fallback at a configured context
of 1,048,576; two GPUs with `NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1` and no custom all-reduce), so the truth rests on no
rule. They are of three machines, so rates are compared only within a pair.
"""

import json
from pathlib import Path

import pytest

from stepline.cli.main import main

CAPTURES = Path(__file__).parents[1] / "data" / "h200-live"


def diagnosis(name: str, tmp_path: Path) -> dict:
    """As the command line answers, with nothing said about the server: GPU, model and settings are in the capture."""
    answer = tmp_path / "answer.json"
    main(["diagnose", str(CAPTURES / name), "--json", str(answer), "--quiet"])
    return json.loads(answer.read_text())["runs"][0]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("cap8", "S201"),
        ("nograph", "H302"),
        ("graph8", "H303"),
        ("kvsplit1", "K402"),
        ("v4_1m", "K401"),
        ("v4_8k", "H301"),
        ("tp2_nop2p", "C501"),
    ],
)
def test_the_planted_fault_comes_first_and_confirmed(name, code, tmp_path):
    first = diagnosis(name, tmp_path)["findings"][0]
    assert (first["code"], first["status"]) == (code, "confirmed")


@pytest.mark.parametrize("name", ["healthy", "tp2"])
def test_a_healthy_server_is_left_alone(name, tmp_path):
    assert diagnosis(name, tmp_path)["findings"] == []


def test_slow_collectives_are_worth_what_fast_ones_bring(tmp_path):
    """The same two GPUs without peer access, all-reduce over sockets, and as they are."""
    found = diagnosis("tp2_nop2p", tmp_path)["findings"]
    assert [finding["code"] for finding in found] == ["C501"], (
        "prompts wait for the same links: that is no S204"
    )
    gain = found[0]["gain"]
    brought = diagnosis("tp2", tmp_path)["load"]["tok_s"]
    assert gain["tok_s"] == pytest.approx(brought, rel=0.3)
    assert gain["low"] < brought < gain["high"]


def test_the_law_predicts_a_batch_measured_later_within_three_percent(tmp_path):
    law = diagnosis("healthy", tmp_path)["step"]["law"]
    later = diagnosis("healthy32", tmp_path)["step"]
    assert later["running"] == 32
    assert [point["running"] for point in law["points"]] == [1, 8, 64]
    predicted = law["fixed_ms"] + 32 * law["per_request_ms"]
    assert predicted == pytest.approx(later["measured_ms"], rel=0.03)


def test_the_founding_case_predicts_what_its_removal_brought(tmp_path):
    """4,390 tok/s and 2.17 ms of GPU work at 31 running were measured at a configured context of 8,192."""
    before, after = diagnosis("v4_1m", tmp_path), diagnosis("v4_8k", tmp_path)
    gain = before["findings"][0]["gain"]
    assert gain["tok_s"] / after["load"]["tok_s"] == pytest.approx(1, abs=0.3)
    promised = [
        line["text"] for line in before["findings"][0]["evidence"] if "configured for 8,192" in line["text"]
    ]
    assert promised == ["configured for 8,192 tokens the step's GPU work would take 2.23 ms"]
    worked = sum(line["measured_ms"] or 0 for line in after["accounting"] if line["component"] != "host gap")
    assert worked == pytest.approx(2.23, rel=0.05)
    assert law_of(before)["per_request_ms"] == pytest.approx(0.716, rel=0.02)


def law_of(answer: dict) -> dict:
    return answer["step"]["law"]


def test_a_recording_says_whose_client_drove_it(tmp_path):
    answer = diagnosis("cap8", tmp_path)
    assert any(clear["code"] == "L101" for clear in answer["ruled_out"])
    assert answer["load"]["queued"] == 56
