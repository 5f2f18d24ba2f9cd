import msgspec
import pytest

from stepline.evidence.gpu import GpuSample
from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, level, server

IDLE = ((0.0, 0, 0, 8.0), (1.0, 0, 0, 8.0), (2.0, 0, 0, 8.0))


def recorded(
    *scrapes: tuple[float, float, float | None, float], busy: float = 0.6, gpu: int = 0, times: int = 4
) -> Run:
    """Scrapes of (time, running, queued, tokens made) and a sample every half second from 0.6 s on."""
    return Run(
        metrics=tuple(
            EngineMetrics(
                origin=Origin("metrics.txt"),
                time_s=time_s,
                running=running,
                queued=queued,
                generated_tokens=tokens,
            )
            for time_s, running, queued, tokens in scrapes
        ),
        gpu_samples=tuple(
            GpuSample(origin=Origin("gpm.csv", n + 2), time_s=0.6 + n / 2, gpu=gpu, graphics_busy=busy)
            for n in range(times)
        ),
    )


def test_fires_when_the_gpu_works_without_the_engine():
    answer = check("H306", recorded(*IDLE))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert answer.headline == "the GPU is 60 % busy while the engine has no request"
    assert answer.evidence[0].text.startswith("median of 3 samples")


def test_what_comes_back_is_the_share_that_equal_turns_take():
    sweep = (level(8, 1000.0, 8.0, 20.0),)
    run = msgspec.structs.replace(server([Stage(running=8, step_ms=8.0)], levels=sweep), metrics=())
    idle = recorded(*IDLE, busy=0.5)
    answer = check("H306", msgspec.structs.replace(run, metrics=idle.metrics, gpu_samples=idle.gpu_samples))
    assert isinstance(answer, Fired)
    assert answer.gain is not None
    assert (answer.gain.low, answer.gain.tok_s, answer.gain.high) == (1250.0, 1500.0, 2000.0)
    assert answer.recoverable_tok_s == 500.0


def test_without_a_rate_nothing_is_promised():
    answer = check("H306", recorded(*IDLE))
    assert isinstance(answer, Fired)
    assert answer.gain is None


def test_an_idle_gpu_is_clear():
    answer = check("H306", recorded(*IDLE, busy=0.01))
    assert isinstance(answer, Clear)
    assert "1.0 %" in answer.reason


@pytest.mark.parametrize(
    "scrapes",
    [
        (),
        ((0.0, 0, 0, 8.0), (1.0, 1, 0, 8.0), (2.0, 0, 0, 8.0)),
        ((0.0, 0, 0, 8.0), (1.0, 0, 2, 8.0), (2.0, 0, 0, 8.0)),
        ((0.0, 0, None, 8.0), (2.0, 0, None, 8.0)),
        ((0.0, 0, 0, 8.0), (2.0, 0, 0, 96.0)),
        ((0.0, 0, 0, 8.0), (1.5, 0, 0, 8.0)),
    ],
    ids=["none", "one ran", "one waited", "queue not told", "tokens were made", "too short"],
)
def test_cannot_tell_unless_the_engine_was_idle_for_a_while(scrapes):
    assert isinstance(check("H306", recorded(*scrapes)), CannotTell)


def test_samples_of_a_load_s_end_do_not_count():
    """Two idle seconds apart from each other: each leaves out its first half second."""
    apart = ((0.0, 0, 0, 8.0), (1.0, 0, 0, 8.0), (1.0, 1, 0, 8.0), (2.0, 0, 0, 8.0), (3.0, 0, 0, 8.0))
    assert isinstance(check("H306", recorded(*apart)), CannotTell)


def test_scrapes_in_a_row_are_one_pause():
    joined = recorded((0.0, 0, 0, 8.0), (1.05, 0, 0, 8.0), (1.3, 0, 0, 8.0), (1.65, 0, 0, 8.0))
    assert isinstance(check("H306", joined), Fired)


@pytest.mark.parametrize(("busy", "fires"), [(0.08, False), (0.12, True)])
def test_an_idle_engine_s_gpu_is_another_process_s_from_a_tenth_on(busy, fires):
    assert isinstance(check("H306", recorded(*IDLE, busy=busy)), Fired) is fires
