"""A damaged config is read or refused in a sentence, never a traceback."""

from typing import Any

import pytest

from stepline.errors import SteplineError
from stepline.facts.catalogue import find_model
from stepline.model.roofline.architecture import parse_config

ODD: tuple[Any, ...] = (None, 0, -1, "x", [1], {})
FAMILIES = (
    "DeepSeek-V3.2",
    "DeepSeek-V4-Flash",
    "Kimi-K2.5",
    "Kimi-K3",
    "Llama-4-Scout-17B-16E-Instruct",
    "MiMo-V2-Flash",
    "MiniMax-M3",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "Qwen3.5-35B-A3B",
    "gemma-4-26B-A4B",
    "gpt-oss-20b",
)


def damaged(config: dict[str, Any]) -> list[tuple[str, object, dict[str, Any]]]:
    """Every key of a config and of its nested parts, replaced by every odd value."""
    variants = []
    for key, value in config.items():
        variants += [(key, odd, {**config, key: odd}) for odd in ODD]
        if isinstance(value, dict):
            variants += [
                (f"{key}.{inner}", odd, {**config, key: part}) for inner, odd, part in damaged(value)
            ]
    return variants


@pytest.mark.parametrize("hub_id", FAMILIES)
def test_no_key_can_break_the_reader(hub_id: str) -> None:
    broken = []
    for key, odd, config in damaged(find_model(hub_id).config):
        try:
            model = parse_config(config, name=hub_id)
        except SteplineError as error:
            if "\n" in str(error):
                broken.append(f"{key} = {odd!r}: more than a sentence: {error}")
        except Exception as error:
            broken.append(f"{key} = {odd!r}: {type(error).__name__}: {error}")
        else:
            if model.params <= 0:
                broken.append(f"{key} = {odd!r}: no parameters")
    assert not broken, "\n".join(broken)
