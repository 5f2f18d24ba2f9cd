"""Seals: nothing can be changed, moved or said afterwards without it being told."""

from pathlib import Path

import pytest

from stepline.errors import UnreadableEvidence
from stepline.lab.blind.seal import append, digest, entries, verify


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    file = tmp_path / "campaign.jsonl"
    append(file, "campaign", "", {"seed": 5}, 1.0)
    for number, name in enumerate(("case-5-000", "case-5-001")):
        append(file, "drawn", name, {"changes": []}, 2.0 + number)
        append(
            file,
            "answer",
            name,
            {"diagnosis_sha256": digest(name.encode()), "code_sha256": "abc"},
            3.0 + number,
        )
        append(file, "truth", name, {"cost": 0.3}, 4.0 + number)
    return file


def test_an_untouched_campaign_holds(campaign: Path) -> None:
    assert verify(campaign, {name: name.encode() for name in ("case-5-000", "case-5-001")}) == []
    assert [entry.kind for entry in entries(campaign)][:4] == ["campaign", "drawn", "answer", "truth"]


@pytest.mark.parametrize("line", range(6))
def test_any_line_changed_taken_out_or_moved_is_told(campaign: Path, line: int) -> None:
    lines = campaign.read_bytes().splitlines(keepends=True)
    campaign.write_bytes(
        b"".join([*lines[:line], lines[line].replace(b'"time_s":', b'"time_s":9'), *lines[line + 1 :]])
    )
    assert verify(campaign)[0].line == line + 2
    campaign.write_bytes(b"".join([*lines[:line], *lines[line + 1 :]]))
    assert verify(campaign)
    campaign.write_bytes(b"".join([*lines[:line], lines[line + 1], lines[line], *lines[line + 2 :]]))
    assert verify(campaign)


def test_another_diagnosis_than_the_sealed_one_is_told(campaign: Path) -> None:
    assert [doubt.line for doubt in verify(campaign, {"case-5-001": b"better"})] == [6]


def test_a_truth_before_its_answer_and_a_second_answer_are_told(tmp_path: Path) -> None:
    file = tmp_path / "campaign.jsonl"
    append(file, "truth", "case-1-000", {}, 1.0)
    append(file, "answer", "case-1-000", {"code_sha256": "a"}, 2.0)
    append(file, "answer", "case-1-000", {"code_sha256": "b"}, 3.0)
    told = " ".join(doubt.text for doubt in verify(file))
    assert "before its answer" in told
    assert "answered twice" in told
    assert "2 versions" in told


def test_a_foreign_line_is_named(campaign: Path) -> None:
    campaign.write_bytes(campaign.read_bytes() + b"hello\n")
    with pytest.raises(UnreadableEvidence, match=r"campaign.jsonl:8"):
        entries(campaign)
