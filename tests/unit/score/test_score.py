import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.cli.main import main
from stepline.score.scores import Answer, Share, score


def _answer(expected, *findings, confirmed=(), forbidden=(), arms=False, error=None):
    return Answer(
        case="case",
        expected=expected,
        forbidden=frozenset(forbidden),
        arms=arms,
        findings=findings,
        confirmed=frozenset(confirmed),
        error=error,
    )


def test_rank_and_silence():
    scores = score(
        [
            _answer("batch-capped", "batch-capped", "host-bound"),
            _answer("batch-capped", "host-bound", "batch-capped"),
            _answer("linear-step"),
            _answer(None, "host-bound"),  # suspected only: silence is kept
            _answer(None, "host-bound", confirmed=["host-bound"], forbidden=["host-bound"]),
            _answer("host-bound", error="unreadable"),
        ]
    )
    assert (scores.top_1.hits, scores.top_3.hits, scores.top_1.total) == (2, 3, 6)
    assert scores.answered.hits == 4
    assert (scores.healthy_called_sick.hits, scores.healthy_called_sick.total) == (1, 2)
    assert scores.forbidden == ("case: host-bound",)
    capped = next(row for row in scores.classes if row.name == "batch-capped")
    assert (capped.recall.hits, capped.recall.total) == (1, 2)
    assert (capped.precision.hits, capped.precision.total) == (1, 1)


@given(st.integers(0, 200), st.integers(1, 200))
def test_wilson_intervals_hold_the_share(hits, total):
    share = Share(min(hits, total), total)
    low, high = share.interval
    assert 0 <= low <= share.value + 1e-12
    assert share.value - 1e-12 <= high <= 1


def test_no_cases_no_share():
    assert Share(0, 0).value is None
    assert Share(0, 0).interval is None


def test_a_folder_of_cases(capsys, tmp_path):
    folder = tmp_path / "01-capped"
    folder.mkdir()
    (folder / "case.toml").write_text(
        'slug = "capped"\n[system]\nhardware = "1x H200 (80 GB free)"\nmodel = "meta-llama/Llama-3.1-8B"\n'
        '[expected]\nfinding = "batch_capped"\nforbidden = ["host_bound"]\n[data]\nfiles = ["server.log"]\n'
    )
    line = "[2026-05-02 10:00:00] Decode batch, #running-req: 8, #token: 2560, token usage: 0.01, cuda graph: True, "
    (folder / "server.log").write_text(f"{line}gen throughput (token/s): 1570.0, #queue-req: 56\n" * 6)
    assert main(["score", str(tmp_path), "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["answers"][0]["findings"][0] == "batch-capped"
    assert main(["score", str(tmp_path)]) == 0
    assert "top-1 1/1" in capsys.readouterr().out


@pytest.mark.parametrize("content", ["[expected", "[data]\nfiles = []\n"])
def test_a_damaged_case_is_named(capsys, tmp_path, content):
    (tmp_path / "case.toml").write_text(content)
    assert main(["score", str(tmp_path)]) == 2
    assert "case.toml" in capsys.readouterr().err
