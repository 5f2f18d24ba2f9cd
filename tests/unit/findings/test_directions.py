"""Which way a setting was changed decides what a comparison says, not which server was measured first."""

from pathlib import Path

import pytest

import stepline
from stepline.facts.levers import find_lever, toward_cure
from stepline.sources.read import read_one_run as read


def found(folder: Path, text: str) -> list[tuple[str, str]]:
    (folder / "t.csv").write_text(text)
    return [(finding.code, finding.status) for finding in stepline.diagnose(read([folder])).findings]


PAIRS = [
    ("max_num_seqs,tok_s\n4,41\n32,236\n", "S201"),
    ("max_model_len,tok_s\n1048576,32\n131072,86\n", "K401"),
    ("mode,tok_s\neager,205\ncuda_graph,964\n", "H302"),
    ("enforce_eager,tok_s\nTrue,205\nFalse,964\n", "H302"),
    ("spec_tokens,tok_s\n0,163\n2,120\n", "S205"),
    ("cuda_graph_max_bs,running,tok_s\n32,67,900\n128,67,1400\n", "H303"),
]


@pytest.mark.parametrize(("text", "code"), PAIRS)
def test_the_order_of_rows_says_nothing_and_the_values_everything(
    tmp_path: Path, text: str, code: str
) -> None:
    header, one, other = text.splitlines()
    assert (code, "confirmed") in found(tmp_path, text)
    assert (code, "confirmed") in found(tmp_path, f"{header}\n{other}\n{one}\n")
    labels = [row.rpartition(",")[0] for row in (one, other)]
    rates = [row.rpartition(",")[2] for row in (one, other)]
    swapped = f"{header}\n{labels[0]},{rates[1]}\n{labels[1]},{rates[0]}\n"
    assert found(tmp_path, swapped) == []


def test_a_context_that_may_be_the_requests_own_is_no_setting(tmp_path: Path) -> None:
    assert found(tmp_path, "context_length,tok_s\n1048576,32\n131072,86\n") == []


def test_a_word_within_a_word_is_no_setting() -> None:
    assert find_lever("string_cache=on") is None
    assert find_lever("special=2") is None


def test_a_change_in_words_was_pulled() -> None:
    lever = find_lever("MTP")
    assert lever is not None
    assert toward_cure(lever, "MTP", None) == 1
    assert toward_cure(lever, "mtp=off", "on") == -1
