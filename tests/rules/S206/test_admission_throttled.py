import pytest

from stepline.evidence.run import Run
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, diagnosed, level, server

ALONE = Stage(running=1, step_ms=5.0)


def waiting(
    running: int = 20, *, queued: int | None = 44, pool_usage: float | None = 0.4, **facts: object
) -> Run:
    stage = Stage(running=running, step_ms=5.6, queued=queued, pool_usage=pool_usage)
    return server([ALONE, stage], levels=[level(64, 3000, 5.8, 1400)], **facts)


def test_fires_when_requests_wait_though_cap_and_pool_have_room():
    answer = check("S206", waiting(max_running=256))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert answer.headline == "44 requests wait while 20 run, though cap and pool have room"
    assert [ruled.by for ruled in answer.ruled_out] == [
        "the cap in force is 256",
        "the pool is at most 40 % full",
    ]
    assert answer.gain.low <= answer.gain.tok_s <= answer.gain.high
    assert answer.gain.tok_s > 1.5 * 3000  # 64 decode together instead of 20
    assert answer.recoverable_tok_s == pytest.approx(answer.gain.tok_s - 3000)


def test_it_makes_a_note_and_no_finding():
    said = diagnosed(waiting(max_running=256))
    assert "S206" not in [finding.code for finding in said.findings]
    assert any(note.text.startswith("S206") for note in said.notes)


def test_clear_at_the_cap():
    answer = check("S206", waiting(max_running=20))
    assert isinstance(answer, Clear)
    assert "S201" in answer.reason


def test_clear_when_the_pool_is_full():
    answer = check("S206", waiting(pool_usage=0.97, max_running=256))
    assert isinstance(answer, Clear)
    assert "S202" in answer.reason


def test_clear_when_everything_runs():
    assert isinstance(check("S206", waiting(64, queued=0, max_running=256)), Clear)


@pytest.mark.parametrize(
    "run",
    [
        waiting(),
        waiting(max_running=256, pool_usage=None),
        waiting(max_running=256, queued=None),
        Run(),
        server([Stage(running=8, step_ms=5.0, queued=None)], max_running=256),
    ],
    ids=["no cap", "no pool use", "no queue told", "nothing", "no offer"],
)
def test_cannot_tell_without_queue_cap_and_pool(run):
    assert isinstance(check("S206", run), CannotTell)
