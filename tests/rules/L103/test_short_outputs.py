import msgspec
import pytest

from stepline.evidence.load import LoadLevel
from stepline.evidence.run import Run
from stepline.findings.outcome import CannotTell, Clear, Fired
from tests.rules.server import Stage, check, diagnosed, level, server


def driven(
    prompt: float | None, output: float | None, *, streams: int = 64, cached: float | None = None
) -> LoadLevel:
    return msgspec.structs.replace(
        level(streams, 1500, 20.0, 900),
        input_tokens=prompt,
        output_tokens=output,
        cached_share=cached,
        tpot_ms=20.0,
        ttft_ms=None,
    )


def loaded(client: LoadLevel, *, step_ms: float = 7.0, **facts: object) -> Run:
    stage = Stage(running=64, step_ms=step_ms, lines=9)
    return server([stage], levels=[client], **facts)


def test_fires_when_the_prompts_of_a_step_outlast_the_step():
    """64 streams of 2,048 tokens in and 32 out: 4,096 prompt tokens for each step of a 16 GB model."""
    answer = check("L103", loaded(driven(2048, 32)))
    assert isinstance(answer, Fired)
    assert answer.status == "suspected"
    assert "4,096 prompt tokens" in answer.headline
    assert "or more for each step of 7.00 ms" in answer.evidence[1].text
    assert answer.recoverable_tok_s is None


def test_it_makes_a_note_and_no_finding():
    said = diagnosed(loaded(driven(2048, 32)))
    assert "L103" not in [finding.code for finding in said.findings]
    assert any(note.text.startswith("L103 short-outputs") for note in said.notes)


@pytest.mark.parametrize(("prompt", "output"), [(512, 229), (2048, 2048)])
def test_clear_on_an_ordinary_mix(prompt, output):
    answer = check("L103", loaded(driven(prompt, output)))
    assert isinstance(answer, Clear)
    assert "is the longer part" in answer.reason


def test_a_slow_step_is_worth_measuring_whatever_its_floor():
    assert isinstance(check("L103", loaded(driven(2048, 32), step_ms=90.0)), Clear)


def test_where_prompts_are_inside_the_step_its_floor_counts():
    client = msgspec.structs.replace(driven(2048, 32), tpot_ms=40.0)
    run = server([], levels=[client])
    answer = check("L103", run, context_length=2064)
    assert isinstance(answer, Fired)
    assert "step of 6.51 ms" in answer.evidence[1].text


def test_prompts_that_the_cache_holds_are_not_computed():
    assert isinstance(check("L103", loaded(driven(2048, 32, cached=0.98))), Clear)
    assert isinstance(check("L103", loaded(driven(2048, 32, cached=1.0))), Clear)


def test_without_the_model_the_tokens_of_a_step_decide():
    beyond, below = (
        check("L103", loaded(driven(prompt, 128), model=None), gpu=None) for prompt in (2048, 1800)
    )
    assert isinstance(beyond, Fired)  # 1024 tokens a step
    assert "948 tokens" in beyond.evidence[1].text
    assert isinstance(below, Clear)


def test_ranks_share_the_batch():
    """Two data-parallel ranks of 32 each: a rank's step brings half of the prompts."""
    run = loaded(driven(1024, 128), model=None)
    lines = tuple(
        msgspec.structs.replace(line, dp=rank, seq=line.seq + 50 * rank, running=32)
        for rank in (0, 1)
        for line in run.decodes
    )
    assert isinstance(check("L103", msgspec.structs.replace(run, decodes=lines), gpu=None), Clear)


@pytest.mark.parametrize(("prompt", "output"), [(None, 32), (2048, None), (2048, 0)])
def test_cannot_tell_without_both_lengths(prompt, output):
    assert isinstance(check("L103", loaded(driven(prompt, output))), CannotTell)


def test_cannot_tell_without_a_load():
    assert isinstance(check("L103", Run()), CannotTell)
