import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.cli.main import main
from stepline.errors import UnreadableEvidence
from stepline.score.case import load_case
from stepline.score.scores import Answer, Share, score


def _answer(expected, *findings, confirmed=(), forbidden=(), arms=False, error=None, accepts=None):
    return Answer(
        case="case",
        expected=expected,
        accepts=frozenset([expected] if accepts is None and expected else accepts or ()),
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


def _case(folder, slug, finding, extra=""):
    folder.mkdir()
    (folder / "case.toml").write_text(
        f'slug = "{slug}"\n{extra}\n[expected]\nfinding = "{finding}"\n[data]\nfiles = ["server.log"]\n'
    )
    return load_case(folder)


@pytest.mark.parametrize(
    "label", ["healthy", "unknown", "power_cap_not_limiting_decode", "benchmark_artifact"]
)
def test_labels_that_ask_for_silence(tmp_path, label):
    case = _case(tmp_path / "case", "of-nobody", label)
    assert (case.expected, case.accepts) == (None, frozenset())


def test_a_case_comes_before_its_label_and_what_it_lists_before_both(tmp_path):
    """Cases 53 and 61; a word in a slug decides nothing."""
    hides = _case(tmp_path / "53", "vllm-bench-hides-queueing", "benchmark_artifact")
    assert (hides.expected, hides.accepts) == ("queue-not-decode", {"queue-not-decode"})
    assert (
        _case(tmp_path / "61", "kimi-k3-eplb-costs-more", "eplb_rearrangement_stall").accepts == frozenset()
    )
    assert _case(tmp_path / "other", "another-queueing", "benchmark_artifact").accepts == frozenset()
    listed = 'accepts = ["L106", "batch_capped"]'
    own = _case(tmp_path / "own", "vllm-bench-hides-queueing", "batch_capped", listed)
    assert (own.expected, own.accepts) == ("batch-capped", {"queue-not-decode", "batch-capped"})
    assert _case(tmp_path / "silent", "x", "batch_capped", "accepts = []").expected is None
    with pytest.raises(UnreadableEvidence, match="`accepts` is a list"):
        _case(tmp_path / "bad", "x", "healthy", 'accepts = "healthy"')


def test_a_recording_lists_what_is_right_too(tmp_path):
    head = 'expected = "H303"\nforbidden = []\n'
    (tmp_path / "truth.toml").write_text(head + 'accepts = ["H303", "host-bound"]\n')
    case = load_case(tmp_path)
    assert (case.expected, case.accepts) == (
        "cuda-graph-uncovered-batch",
        {"cuda-graph-uncovered-batch", "host-bound"},
    )
    (tmp_path / "truth.toml").write_text(head)
    assert load_case(tmp_path).accepts == {"cuda-graph-uncovered-batch"}


def test_every_accepted_name_is_right():
    answer = _answer("batch-capped", "host-bound", accepts=["batch-capped", "host-bound"])
    assert (answer.top_1, answer.top_3, answer.answered) == (True, True, True)
    wrong = _answer(
        "batch-capped", "linear-step", "x", "y", "host-bound", accepts=["batch-capped", "host-bound"]
    )
    assert (wrong.top_1, wrong.top_3) == (False, False)
    by_name = {row.name: row for row in score([answer, wrong]).classes}
    assert (by_name["batch-capped"].recall.hits, by_name["batch-capped"].recall.total) == (1, 2)
    assert by_name["host-bound"].precision.hits == 1
