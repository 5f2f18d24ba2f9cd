"""Prompts that no cache has seen, and an opening that all share where asked for."""

import msgspec

from stepline.sources.engines.sglang.dialect import NativeGenerate
from stepline.sources.load.level import Address, LevelPlan
from stepline.sources.load.loops import first_answer_tokens
from stepline.sources.load.request import asker, head
from stepline.sources.openai_dialect import Completions
from tests.unit.sources.load.servers import NativeDialect

PLAN = LevelPlan(concurrency=4, input_tokens=40, output_tokens=100, seconds=1.0, vocabulary=50, seed=3)


def test_prompts_never_repeat_not_even_with_one_seed() -> None:
    prompts = [
        tuple(ask(10).prompt_ids)
        for ask in (asker(PLAN, as_ids=True), asker(PLAN, as_ids=True))
        for _ in "ab"
    ]
    assert len(set(prompts)) == 4
    assert all(len(prompt) == 40 and min(prompt) >= 16 and max(prompt) < 50 for prompt in prompts)
    texts = {asker(PLAN, as_ids=False)(10).prompt_text for _ in range(4)}
    assert len(texts) == 4
    assert {len(text.split()) for text in texts} == {40}


def test_a_shared_opening_is_the_same_in_every_level_of_a_seed() -> None:
    shared = msgspec.structs.replace(PLAN, shared_prefix_tokens=25)
    for as_ids in (True, False):
        asks = [asker(shared, as_ids=as_ids)(10) for _ in range(2)]
        first, second = (list(ask.prompt_ids) or ask.prompt_text.split() for ask in asks)
        assert first[:25] == second[:25]
        assert first[25:] != second[25:]
        assert len(first) == len(second) == 40


def test_first_answers_end_spread_after_the_time_together() -> None:
    plan = LevelPlan(concurrency=4, input_tokens=1, output_tokens=100, together_tokens=64, seconds=1.0)
    assert [first_answer_tokens(plan, stream) for stream in range(4)] == [89, 114, 139, 164]


def test_the_head_names_prefix_host_and_headers() -> None:
    address = Address(host="h", port=80, prefix="/p", headers=(("X-Key", "s"),))
    lines = head(address, NativeDialect()).split(b"\r\n")
    assert lines[0] == b"POST /p/generate HTTP/1.1"
    assert b"Host: h:80" in lines
    assert b"X-Key: s" in lines
    assert lines[-1] == b"Content-Length: "


def test_sampling_options_stand_where_each_engine_looks_for_them_and_never_replace_our_own() -> None:
    asked = msgspec.structs.replace(PLAN, sampling={"top_k": 50, "temperature": 9.0}, temperature=0.5)
    for as_ids in (True, False):
        ask = asker(asked, as_ids=as_ids)(10)
        native = msgspec.json.decode(NativeGenerate().body(ask))["sampling_params"]
        plain = msgspec.json.decode(
            Completions("m", takes_ids=True, running_usage=True, extensions=True).body(ask)
        )
        assert native["top_k"] == plain["top_k"] == 50
        assert native["temperature"] == plain["temperature"] == 0.5
