import re

import pytest

from stepline.errors import UnknownFact
from stepline.facts.catalogue import find_model, model_ids


@pytest.mark.parametrize(
    ("name", "hub_id"),
    [
        ("deepseek-ai/DeepSeek-V4-Flash", "deepseek-ai/DeepSeek-V4-Flash"),
        ("deepseek-v4-flash", "deepseek-ai/DeepSeek-V4-Flash"),
        ("llama-3.1-8b", "meta-llama/Llama-3.1-8B"),
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B"),
        ("meta-llama/Meta-Llama-3.1-70B-Instruct", "meta-llama/Llama-3.1-70B"),
        ("gpt-oss-120b", "openai/gpt-oss-120b"),
    ],
)
def test_a_model_is_found_by_the_names_in_use(name: str, hub_id: str) -> None:
    assert find_model(name).hub_id == hub_id


def test_a_newer_version_is_never_taken_for_an_older_one() -> None:
    with pytest.raises(UnknownFact, match=r"deepseek-ai/DeepSeek-V4-Flash.*config\.json"):
        find_model("deepseek-ai/DeepSeek-V4.1-Flash")


def test_every_bundled_model_names_its_source() -> None:
    for hub_id in model_ids():
        model = find_model(hub_id)
        assert hub_id in model.source
        assert model.config


@pytest.mark.parametrize("name", ["nomodel", "", "x" * 200])
def test_a_name_that_is_like_none_gets_three_of_them(name: str) -> None:
    with pytest.raises(UnknownFact) as refused:
        find_model(name)
    assert len(re.findall(r"\S+/\S+", str(refused.value))) == 3
