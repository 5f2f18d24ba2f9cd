import msgspec
import pytest

from stepline.evidence.run import Run
from stepline.findings.outcome import CannotTell, Clear, Fired
from stepline.model.signs.tensor_pipe import tensor_reading
from tests.rules.server import Stage, check, diagnosed, picture, server


def measured(tensor: float, *, gpu_busy: float | None = 0.97, **facts: object) -> Run:
    """An 8B server decoding 64 in 6.6 ms, whose products take 14 % of an H200's bf16 peak."""
    run = server([Stage(running=64, step_ms=6.6, lines=9, gpu_busy=gpu_busy)], **facts)
    return msgspec.structs.replace(
        run,
        gpu_samples=tuple(msgspec.structs.replace(sample, tensor_busy=tensor) for sample in run.gpu_samples),
    )


def test_fires_when_the_pipe_does_less_than_the_step_needs():
    answer = check("K406", measured(0.01))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert "reads 1.0 %" in answer.headline
    assert answer.recoverable_tok_s is None
    assert answer.rivals[0].rival == "K405 wrong-dtype"


def test_it_makes_a_note_and_no_finding():
    said = diagnosed(measured(0.01))
    assert said.findings == ()
    assert any(note.text.startswith("K406") for note in said.notes)


@pytest.mark.parametrize("tensor", [0.05, 0.3])
def test_clear_within_half_of_the_least_and_above(tensor):
    answer = check("K406", measured(tensor))
    assert isinstance(answer, Clear)
    assert "needs at least" in answer.reason


def test_a_low_reading_at_one_request_is_all_that_decode_can_show():
    """Eight padded rows of an 8B model in 4.9 ms: 2.5 % were measured on a healthy H200."""
    run = measured(0.025)
    alone = msgspec.structs.replace(
        run,
        decodes=tuple(msgspec.structs.replace(line, running=1, tok_s=1000 / 4.9) for line in run.decodes),
    )
    assert isinstance(check("K406", alone), Clear)


@pytest.mark.parametrize(
    ("run", "gpu"),
    [(measured(0.01, gpu_busy=None), "h200"), (measured(0.01, model=None), "h200"), (measured(0.01), None)],
    ids=["no samples", "no model", "no GPU"],
)
def test_cannot_tell_without_both_sides(run, gpu):
    assert isinstance(check("K406", run, gpu=gpu), CannotTell)


@pytest.mark.parametrize(("share", "fires"), [(0.45, True), (0.55, False)])
def test_a_pipe_reads_too_low_below_half_the_least(share, fires):
    reading = tensor_reading(picture(measured(0.05)))
    least = reading.expected.low / reading.narrowest
    assert isinstance(check("K406", measured(share * least)), Fired) is fires
