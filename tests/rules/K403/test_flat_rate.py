"""A rate that no further stream raises, told by a client's table alone."""

from pathlib import Path

import pytest

import stepline


def found(folder: Path, text: str) -> list[tuple[str, str]]:
    (folder / "t.csv").write_text(text)
    return [(one.code, one.status) for one in stepline.diagnose(stepline.read([folder])).findings]


def test_a_flat_rate_from_the_first_stream_on_is_suspected(tmp_path: Path) -> None:
    assert found(tmp_path, "concurrency,tok_s\n1,61\n2,58\n8,60\n32,59\n") == [("K403", "suspected")]


def test_so_it_is_for_batches(tmp_path: Path) -> None:
    assert ("K403", "suspected") in found(tmp_path, "batch,aggregate_tok_s\n1,30\n2,31\n4,30\n")


@pytest.mark.parametrize(
    "text",
    [
        "concurrency,tok_s\n1,61\n2,90\n8,110\n32,112\n",  # rises, then saturates
        "concurrency,tok_s\n16,610\n32,600\n128,605\n",  # at its limit from the start
        "concurrency,tok_s\n1,61\n32,60\n",  # two levels
        "concurrency,tok_s,tpot_ms\n1,61,16\n4,62,16.5\n16,60,17\n",  # streams as fast as one: the others wait
        "concurrency,tok_s,isl,osl\n1,61,8192,64\n4,62,8192,64\n16,60,8192,64\n",  # prompts take the time
    ],
)
def test_what_another_cause_may_explain_is_left_alone(tmp_path: Path, text: str) -> None:
    assert not any(code == "K403" for code, _ in found(tmp_path, text))
