"""Whose word stands: the engine's last in its log, `/server_info`, who started it, the release's default."""

import itertools

import pytest

from stepline.evidence.origin import Origin
from stepline.evidence.setting import SettingSaid
from stepline.facts.settings import Unknown
from stepline.model.settings.in_force import Settings, in_force, same


def said(by, value, name="max_running_requests", engine="sglang", **more):
    return SettingSaid(engine=engine, name=name, value=value, by=by, origin=Origin("f", 1, name), **more)


WORDS = {
    "log": said("log", 9),
    "server_info": said("server_info", 32),
    "command": said("command", 64),
    "environment": said("environment", 128),
}
ORDER = ("log", "server_info", "command", "environment")


@pytest.mark.parametrize("chosen", [c for n in range(1, 5) for c in itertools.combinations(ORDER, n)])
def test_the_most_believed_source_stands_in_any_order_of_reading(chosen):
    expected = WORDS[chosen[0]]
    for order in itertools.permutations(chosen):
        setting = in_force("sglang", "0.5.16", [WORDS[by] for by in order])["max_running_requests"]
        assert (setting.value, setting.by) == (expected.value, expected.by)
        assert len(setting.said) == len(chosen)


def test_of_two_words_of_one_source_the_later_stands():
    words = [said("log", 32), said("log", 9, changed=True)]
    assert in_force("sglang", None, words)["max_running_requests"].value == 9
    assert in_force("sglang", None, words[::-1])["max_running_requests"].value == 32


def test_what_was_asked_for_and_not_given():
    words = [said("command", 64), said("log", 9, changed=True)]
    assert in_force("sglang", None, words)["max_running_requests"].asked == 64
    named = [said("server_info", 64), said("log", 9, changed=True, asked=70)]
    assert in_force("sglang", None, named)["max_running_requests"].asked == 70
    unasked = in_force("sglang", None, [said("log", 48, changed=True)])["max_running_requests"]
    assert unasked.asked is None
    assert unasked.changed is not None


def test_a_change_without_a_value_leaves_it_unknown():
    words = [
        said("server_info", "auto", "moe_runner_backend"),
        said("log", None, "moe_runner_backend", changed=True),
    ]
    setting = in_force("sglang", "0.5.16", words)["moe_runner_backend"]
    assert isinstance(setting.value, Unknown)
    assert setting.asked == "auto"


def test_nobody_spoke_so_the_default_of_that_release_stands():
    assert Settings("vllm", "0.24.0", []).get("--gpu-memory-utilization").value == 0.92
    assert Settings("vllm", "0.11.0", []).get("gpu_memory_utilization").value == 0.9
    unknown = Settings("vllm", "9.9", []).get("gpu_memory_utilization")
    assert isinstance(unknown.value, Unknown)
    assert unknown.by == "default"
    assert isinstance(Settings("vllm", None, []).get("gpu_memory_utilization").value, Unknown)
    assert Settings("vllm", "0.24.0", []).get("--abacus") is None


def test_variables_and_checkpoints_are_settings_like_any_other():
    words = [
        said("environment", True, "CUDA_LAUNCH_BLOCKING", "environment"),
        said("environment", "fp8", "checkpoint.quant_method", "environment"),
    ]
    found = in_force("vllm", None, words)
    assert found["CUDA_LAUNCH_BLOCKING"].value is True
    assert found["CUDA_LAUNCH_BLOCKING"].default is False
    assert found["checkpoint.quant_method"].value == "fp8"


def test_words_of_another_engine_are_not_this_ones():
    assert in_force("vllm", None, [said("log", 3)]) == {}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1, 1.0, True),
        ("FP8", "fp8", True),
        (True, 1, False),
        (0, False, False),
        (None, None, True),
        ([1], [1], True),
    ],
)
def test_equal_values_however_they_are_written(one, other, expected):
    assert same(one, other) is expected
