"""Gaps between tokens as the client sees them, where the log tells no step."""

import msgspec
import pytest

from tests.rules.server import level, picture, server


def measured(gap_ms: float, output_tokens: int):
    """64 streams after 32, whose gap was 88 ms."""
    levels = [
        msgspec.structs.replace(
            level(streams, rate, tpot_ms, 600.0), itl_ms=gap, output_tokens=output_tokens, requests=200
        )
        for streams, rate, tpot_ms, gap in ((32, 137.0, 229.0, 88.0), (64, 162.0, 389.0, gap_ms))
    ]
    return [point.step_ms for point in picture(server([], levels=levels)).law.points]


@pytest.mark.parametrize(
    ("gap_ms", "output_tokens", "steps"),
    [
        (350.0, 128, [88.0]),
        (120.0, 128, [88.0, 120.0]),
        (350.0, 512, [88.0, 350.0]),
    ],
    ids=["every second gap holds a prompt", "no longer than the batch is larger", "few prompts"],
)
def test_a_gap_that_holds_a_prompt_is_no_step(gap_ms, output_tokens, steps):
    assert measured(gap_ms, output_tokens) == pytest.approx(steps)
