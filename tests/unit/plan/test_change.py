"""Which flag to try, and what to measure with and without it."""

from pathlib import Path

import pytest

from stepline.findings.diagnose import diagnose
from stepline.plan.change import Change, arm_levels, change_for
from stepline.plan.experiment import Experiment
from stepline.sources.engines.sglang.routes import FLAGS
from stepline.sources.openai_dialect import Completions
from stepline.sources.surface import Found
from stepline.tasks.by_hand import by_hand, flags_of
from stepline.tasks.live import LiveRequest
from stepline.tasks.picture import picture_of
from stepline.tasks.record import Recorded

LIVE = Path(__file__).parents[2] / "data" / "h200-live"
FOUND = Found(
    engine="sglang",
    dialect=Completions("m", takes_ids=True, running_usage=True, extensions=True),
    flags=FLAGS,
)


@pytest.mark.parametrize(
    ("recording", "change"),
    [
        ("cap8", Change(code="S201", setting="max_running", value=27)),
        ("graph8", Change(code="H303", setting="decode_graph_sizes", value=64)),
        ("v4_1m", Change(code="K401", setting="context_length", value=8192)),
        ("nograph", None),
        ("healthy", None),
    ],
)
def test_the_first_finding_with_a_flag_is_tried(recording: str, change: Change | None) -> None:
    picture = picture_of(LIVE / recording)
    assert change_for(picture, diagnose(picture)) == change


def level(streams: int, seconds: float = 6.0, prompt: int = 512) -> Experiment:
    return Experiment(
        kind="level",
        concurrency=streams,
        input_tokens=prompt,
        output_tokens=192,
        together_tokens=24,
        seconds=seconds,
        decides="",
    )


def test_arms_drive_each_level_as_it_was_driven_last() -> None:
    done = (level(64), level(1), level(64, 12.0), level(8, prompt=3072))
    assert arm_levels(done, 1000) == (level(1), level(64, 12.0))


def test_where_time_is_short_the_heaviest_level_comes_first() -> None:
    done = (level(1), level(64, 12.0), level(8))
    assert arm_levels(done, 46) == (level(64, 12.0),)
    assert arm_levels(done, 44) == ()
    assert arm_levels((), 1000) == ()


def test_the_commands_by_hand_repeat_the_load() -> None:
    lines = by_hand(
        "http://h:1",
        LiveRequest(output_tokens=64),
        Recorded(FOUND, None, (level(1), level(64))),
        Change(code="S201", setting="max_running", value=64),
        None,
    )
    load = "--concurrency 1,64 --output-tokens 64 --no-profile"
    assert lines[:4] == [
        "to prove S201, restart the server with --max-running-requests 64 and compare:",
        f"  stepline record http://h:1 -o before {load}   (before the restart)",
        f"  stepline record http://h:1 -o after {load}   (after it)",
        "  stepline compare before after",
    ]


def test_without_a_known_flag_there_are_no_commands() -> None:
    unknown = Change(code="S201", setting="another", value=1)
    assert flags_of(unknown, FOUND) is None
    assert by_hand("http://h:1", LiveRequest(), Recorded(FOUND, None, (level(1),)), unknown, None) == []
