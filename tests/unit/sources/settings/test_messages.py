"""Engines' own words for what they changed: made anew from their templates with other numbers."""

# engines' own lines and commands, whole

import pytest

from stepline.facts.settings.messages import messages, opening_pattern, whole_pattern
from stepline.sources.settings.messages import ChangeReader, changes_in

HEADS = {
    "sglang": "[2031-04-05 06:07:08 TP0] ",
    "vllm": "(EngineCore pid=5) WARNING 04-05 06:07:08 [vllm.py:9] ",
}


def made_anew(message, start: int) -> tuple[str, list[str]]:
    """The template with numbers of our own, and those numbers."""
    pieces = message.template.split("{}")
    filled = [str(start + 3 * at) for at in range(len(pieces) - 1)]
    return "".join(a + b for a, b in zip(pieces, [*filled, ""], strict=True)), filled


@pytest.mark.parametrize("engine", HEADS)
@pytest.mark.parametrize("start", [11, 4096])
def test_every_message_gives_its_setting_and_values(engine, start):
    reader = ChangeReader(engine)
    known = messages(engine)
    assert len(known) > 150
    for message in known:
        text, filled = made_anew(message, start)
        found = {said.name: said for said in reader.read(HEADS[engine] + text, "server.log", 7)}
        assert message.setting in found, message.template
        said = found[message.setting]
        assert said.changed
        assert (said.origin.file, said.origin.line) == ("server.log", 7)
        if message.engine_group is not None:
            assert str(said.value) == filled[message.engine_group], message.template
        if message.user_group is not None:
            assert str(said.asked) == filled[message.user_group], message.template


@pytest.mark.parametrize("engine", HEADS)
def test_ordinary_lines_change_nothing(engine):
    lines = [
        "Decode batch, #running-req: 8, #token: 4096, cuda graph: True, gen throughput (token/s): 280.1, #queue-req: 0",
        "Engine 000: Avg prompt throughput: 1.0 tokens/s, Running: 8 reqs, Waiting: 0 reqs, GPU KV cache usage: 3.1%",
        "max_total_num_tokens=187264, chunked_prefill_size=2048, max_running_requests=9, context_len=262144",
        "Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=58.0 GB",
        "",
        "x" * 100_000,
    ]
    assert changes_in(lines, engine, "x") == ()


@pytest.mark.parametrize(
    ("engine", "line", "name", "value", "asked"),
    [
        (
            "sglang",
            (
                "max_running_requests is capped to 21 by the mamba state cache "
                "(max_mamba_cache_size=64, 3 state slots per request)."
            ),
            "max_running_requests",
            21,
            None,
        ),
        (
            "sglang",
            (
                "max_running_requests was reduced from the requested 900 to 333 (per dp worker) "
                "due to the available KV cache capacity."
            ),
            "max_running_requests",
            333,
            900,
        ),
        ("vllm", "Truncating max_cudagraph_capture_size to 24", "max_cudagraph_capture_size", 24, None),
        (
            "vllm",
            (
                "Reducing Torch parallelism from 48 threads to 2 to avoid unnecessary CPU contention. "
                "Set OMP_NUM_THREADS"
            ),
            "OMP_NUM_THREADS",
            2,
            48,
        ),
        (
            "vllm",
            (
                "Async scheduling will be disabled because it is not supported with the `ray` "
                "distributed executor backend."
            ),
            "async_scheduling",
            False,
            None,
        ),
        ("vllm", "Cudagraph is disabled under eager mode", "compilation_config.cudagraph_mode", "NONE", None),
    ],
)
def test_words_that_engines_print(engine, line, name, value, asked):
    found = {said.name: said for said in changes_in([line], engine, "x")}
    assert (found[name].value, found[name].asked) == (value, asked)


def test_a_line_that_was_cut_behind_its_values_still_tells():
    line = "max_running_requests was reduced from the requested 77 to 55 (per dp worker) due"
    assert [said.value for said in changes_in([line], "sglang", "x")] == [55]
    assert changes_in(["max_running_requests was reduced from the requ"], "sglang", "x") == ()


def test_an_opening_needs_values_and_enough_words():
    assert opening_pattern("Nothing is filled in here at all", ()) is None
    assert opening_pattern("to {} now", (0,)) is None
    assert whole_pattern("a  b {}").search("a b 7") is None
    assert whole_pattern("a b {}").search("a   b 7")[1] == "7"


def test_keys_in_a_message_are_taken_out():
    (said, *_) = changes_in(["Truncating max_cudagraph_capture_size to sk-abcdefghijklmnop"], "vllm", "x")
    assert "sk-abcdefghijklmnop" not in repr(said)
