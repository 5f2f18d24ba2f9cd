"""Names of measurements: every name that a tool writes, in whatever order, case and separators, and what is refused."""

import re
import tomllib
from importlib import resources
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.sources.quantities.quantity import Quantity, parse
from stepline.sources.quantities.split import split
from stepline.sources.quantities.words import typed_by_hand, vocabulary

REFERENCES = tomllib.loads(
    resources.files("stepline.sources.quantities").joinpath("references.toml").read_text("utf-8")
)
NAMES = sorted({name for one in REFERENCES["reference"] for name in one["names"]})
BY_HAND = sorted({name for one in REFERENCES["by_hand"] for name in one["names"]})

SAID: dict[str, tuple[Any, ...]] = {
    "Output tok/s": ("token_rate", None, "s", "output", None),
    "aggregate_tok_s": ("token_rate", None, "s", None, None),
    "tokens_per_second": ("token_rate", None, "s", None, None),
    "tok_s_per_gpu": ("token_rate", None, "s", None, "gpu"),
    "per_request_tok_s": ("token_rate", None, "s", None, "request"),
    "tok/s/user": ("token_rate", None, "s", None, "request"),
    "Tput User (TPS)": ("token_rate", None, None, None, "request"),
    "num_completed_requests_per_min": ("request_rate", None, "min", None, None),
    "Req Tput (RPS)": ("request_rate", None, None, None, None),
    "request_throughput": ("request_rate", None, None, None, None),
    "Request rate configured (RPS)": ("offered_rate", None, None, None, None),
    "TPOT (ms)": ("tpot", None, "ms", None, None),
    "Mean Time per Output Token [ms]": ("tpot", "mean", "ms", None, None),
    "p99_ttft_ms": ("ttft", "p99", "ms", None, None),
    "P99.9 TTFT (ms)": ("ttft", "p999", "ms", None, None),
    "ms_per_step": ("step", None, "ms", None, None),
    "iterLatencyMS": ("step", None, "ms", None, None),
    "median_lat_s": ("e2e", "p50", "s", None, None),
    "Median Response Time": ("e2e", "p50", None, None, None),
    "decode_ms_avg": ("decode_time", "mean", "ms", None, None),
    "prefill_tok_s": ("token_rate", None, "s", "input", None),
    "Total token throughput (tok/s)": ("token_rate", None, "s", "both", None),
    "Total generated tokens": ("output_tokens", "sum", None, "output", None),
    "Output Sequence Length": ("output_tokens", None, None, None, None),
    "Maximum request concurrency": ("concurrency", None, None, None, None),
    "Peak concurrent requests": ("concurrency", "max", None, None, None),
    "vllm:num_requests_running": ("running", None, None, None, None),
    "vllm:kv_cache_usage_perc": ("kv_usage", None, "percent", None, None),
    "clocks.current.sm [MHz]": ("sm_clock", None, "mhz", None, None),
    "DCGM_FI_DEV_MEM_CLOCK": ("memory_clock", None, None, None, None),
}


def told(quantity: Quantity) -> tuple[Any, ...]:
    return quantity.what, quantity.statistic, quantity.unit, quantity.side, quantity.per


@pytest.mark.parametrize("name", SAID)
def test_a_name_says_what_it_measures(name: str) -> None:
    assert told(parse(name)) == SAID[name]


@pytest.mark.parametrize(
    "name",
    [
        *(
            "tpot_change_pct",
            "mean_ttft_ratio_diff",
            "request_goodput",
            "draft_tokens_per_s",
            "ttft_target_ms",
        ),
        *("Accepted throughput tokens/s", "std_dev_of_nothing", "throughput", "tokens", "model", "ttst"),
        *("mean_e2el_from_schedule_ms", "energy_per_output_token", "memory temp", "output cost ($/1M)"),
    ],
)
def test_what_would_mean_something_else_is_not_understood(name: str) -> None:
    assert parse(name).what is None


def test_a_load_in_the_name() -> None:
    assert parse("live_ctx_2048_c8_tok_s").at == (("concurrency", 8.0), ("context", 2048.0))
    assert parse("fp16_tok_s").at == ()
    assert parse("fp16_tok_s").unknown == ("fp16",)


def test_an_unknown_word_changes_nothing_and_is_kept() -> None:
    assert parse("oneshot_tok_s").unknown == ("oneshot",)
    assert told(parse("blue median_tpot_ms")) == told(parse("median_tpot_ms"))


@pytest.mark.parametrize("name", [*NAMES, *BY_HAND])
def test_every_name_of_a_tool_is_understood_or_passed_over_for_a_reason(name: str) -> None:
    quantity = parse(name)
    assert quantity.what or quantity.refused or quantity.unused


def test_every_phrase_stands_in_a_reference_or_is_counted_as_typed_by_hand() -> None:
    tools = {one["tool"] for one in (*REFERENCES["reference"], *REFERENCES["by_hand"])}
    texts = [" ".join(split(name)) for name in (*NAMES, *BY_HAND, *tools)]
    missing = {
        " ".join(words)
        for words in vocabulary()
        if not any(re.search(rf"(?:^| ){' '.join(words)}(?: |$)", text) for text in texts)
    }
    assert missing == typed_by_hand()
    assert len(BY_HAND) < len(NAMES) / 10


def test_most_names_of_serving_clients_say_a_quantity() -> None:
    """A vocabulary that passes over what it is for would pass the tests above."""
    for tool, least in (
        ("vllm bench serve", 55),
        ("sglang bench_serving", 75),
        ("lmdeploy", 45),
        ("evalscope perf", 25),
    ):
        names = {n for one in REFERENCES["reference"] if one["tool"] == tool for n in one["names"]}
        assert sum(parse(name).what is not None for name in names) >= least, tool


WHOLE = [name for name in NAMES if parse(name).is_time or parse(name).what in ("token_rate", "request_rate")]


@pytest.mark.parametrize("name", WHOLE)
def test_no_name_is_understood_as_a_whole_string_only(name: str) -> None:
    """Case, separators and a foreign word in front must not matter; so no phrase can be a whole header."""
    said = told(parse(name))
    words = split(name)
    for other in ("_".join(words), " ".join(words).upper(), "-".join(words), f"zzz_{'_'.join(words)}"):
        assert told(parse(other)) == said, other


@pytest.mark.parametrize("what", ["ttft", "tpot", "itl", "e2el"])
def test_the_order_of_quantity_statistic_and_unit_says_nothing(what: str) -> None:
    said = {told(parse(" ".join(order))) for order in permutations((what, "p99", "ms"))}
    assert len(said) == 1


def test_no_phrase_holds_a_unit_or_a_statistic() -> None:
    parts = {
        phrase
        for phrase, meanings in vocabulary().items()
        if len(phrase) == 1 and {"unit", "statistic"} & set(meanings)
    }
    mixed = {
        " ".join(phrase)
        for phrase, meanings in vocabulary().items()
        if len(phrase) > 1 and "what" in meanings and any((word,) in parts for word in phrase)
    }
    assert mixed == set()


@given(st.text(max_size=60))
def test_no_name_raises(name: str) -> None:
    parse(name)
