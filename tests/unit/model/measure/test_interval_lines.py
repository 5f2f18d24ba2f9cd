"""Lines that print no prompt tokens and hold prefill all the same."""

import pytest

from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport
from stepline.model.measure.interval_lines import held
from stepline.model.measure.windows import decode_windows

POOL = 400_000


def line(
    number: int, tok_s: float, prompt_tok_s: float, usage: float | None, running: int = 4
) -> DecodeReport:
    return DecodeReport(
        seq=number,
        origin=Origin("vllm.log", number),
        time_s=1000.0 + 10 * number,
        running=running,
        queued=0,
        tok_s=tok_s,
        prefill_tok_s=prompt_tok_s,
        pool_usage=usage,
        instrument="interval",
    )


def one(line_: DecodeReport, before: DecodeReport, after: DecodeReport, pool: int | None = POOL):
    return held([before, line_, after], pool_tokens=pool, chunk_tokens=None)[line_.seq]


@pytest.mark.parametrize(
    ("grown_tokens", "holds"),
    [
        (800, "decode"),  # what 80 tok/s make in ten seconds
        (1200, "decode"),
        (2400, "prefill"),  # thrice as much: a prompt is being computed
        (-1200, "fewer requests"),
    ],
)
def test_the_cache_grows_by_what_decode_makes_or_something_else_is_in_it(grown_tokens, holds):
    before = line(1, 80.0, 0.0, 0.100)
    here = line(2, 80.0, 0.0, 0.100 + grown_tokens / POOL)
    assert one(here, before, line(3, 80.0, 3000.0, 0.2)) == holds


@pytest.mark.parametrize(("counted", "holds"), [(200.0, "decode"), (205.0, "unknown")])
def test_without_the_pool_what_the_next_line_counts_decides(counted, holds):
    """2,048 tokens fit one forward of any release: no longer prompt can have begun before."""
    here = line(2, 80.0, 0.0, None)
    assert one(here, line(1, 80.0, 0.0, None), line(3, 80.0, counted, None), pool=None) == holds


def test_a_long_prompt_reaches_back_over_several_lines_and_not_over_an_idle_server():
    lines = [line(1, 80.0, 0.0, None), line(2, 80.0, 0.0, None), line(3, 9.0, 20_000.0, None)]
    assert set(held(lines, pool_tokens=None, chunk_tokens=None).values()) == {"unknown"}
    idle = [lines[0], line(2, 0.0, 0.0, None, running=0), lines[2]]
    assert held(idle, pool_tokens=None, chunk_tokens=None) == {1: "decode"}


def test_rounding_of_a_huge_pool_hides_a_prompt_so_it_is_not_asked():
    before, here = line(1, 20.0, 0.0, 0.010), line(2, 20.0, 0.0, 0.010)
    assert one(here, before, line(3, 20.0, 9000.0, 0.012), pool=13_000_000) == "unknown"


def test_a_line_that_may_hold_a_prompt_is_a_step_only_beside_lines_that_hold_none():
    quick = [line(number, 80.0, 0.0, None) for number in (1, 2, 3)]
    slow = [line(4, 8.0, 0.0, None), line(5, 8.0, 9000.0, None)]
    like = [line(6, 79.0, 0.0, None), line(7, 8.0, 9000.0, None)]
    alone = decode_windows(Run(decodes=tuple(slow)))
    assert not alone.valid
    assert [window.step_ms for window in alone.bounded] == [500.0, 500.0]
    beside = decode_windows(Run(decodes=(*quick, line(8, 80.0, 0.0, None))))
    assert [round(window.step_ms) for window in beside.valid] == [50, 50, 50]
    mixed = decode_windows(Run(decodes=(*quick, *slow, *like)))
    assert all(window.step_ms < 51 for window in mixed.valid)
    assert mixed.discarded["prefill counted later"] >= 1
