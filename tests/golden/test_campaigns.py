"""Campaigns that were run: their seals hold, and what docs/accuracy.md counts can be counted again."""

from pathlib import Path

import pytest

from stepline.lab.blind.seal import entries, verify

CAMPAIGNS = sorted((Path(__file__).parents[1] / "data").glob("*.campaign.jsonl"))


@pytest.mark.parametrize("file", CAMPAIGNS, ids=lambda file: file.stem)
def test_seals_hold_and_every_answer_has_its_truth(file: Path) -> None:
    assert verify(file) == []
    read = entries(file)
    sealed = [entry.case for entry in read if entry.kind == "answer"]
    assert sealed == [entry.case for entry in read if entry.kind == "truth"]


def test_the_first_campaign_is_counted_as_the_page_says() -> None:
    (file,) = [one for one in CAMPAIGNS if one.name == "sglang-h200-20261201.campaign.jsonl"]
    read = {kind: {e.case: e.body for e in entries(file) if e.kind == kind} for kind in ("answer", "truth")}
    assert len(read["truth"]) == 16
    sick = {case for case, body in read["truth"].items() if body["low"] > 0.1 or body["cost"] > 0.1}
    assert len(sick) == 4
    silent = {case for case, body in read["answer"].items() if not body["findings"]}
    assert len(silent) == 8
    assert not silent & sick
    confirmed = {
        c for c, b in read["answer"].items() if any(f["status"] == "confirmed" for f in b["findings"])
    }
    assert confirmed == {"case-20261201-010", "case-20261201-013"}
