"""Defaults by release: read ones, ones between two that agree, and unknown ones."""

import pytest

from stepline.facts.settings import Setting, Unknown, catalogue
from stepline.facts.settings.records import release_key

SETTING = Setting(
    engine="sglang",
    name="x",
    releases=("1.0.0", "1.2.0", "1.4.0.post1"),
    default=(("1.0.0", 1), ("1.4.0.post1", 5)),
)


@pytest.mark.parametrize(
    ("version", "expected"),
    [("1.0.0", 1), ("1.1.7", 1), ("1.2.0", 1), ("1.2.0+cu130", 1), ("v1.4.0.post1", 5)],
)
def test_a_release_that_was_read_or_lies_between_two_that_agree(version, expected):
    assert SETTING.default_at(version) == expected


@pytest.mark.parametrize("version", [None, "0.9", "1.3.0", "1.4.0", "1.5", "nightly", "9" * 400])
def test_any_other_release_has_an_unknown_default(version):
    assert isinstance(SETTING.default_at(version), Unknown)


def test_a_setting_that_a_release_does_not_have_has_no_default_there():
    young = Setting(engine="sglang", name="y", releases=("1.0", "2.0"), default=(("2.0", None),), since="2.0")
    assert isinstance(young.default_at("1.0"), Unknown)
    assert young.default_at("2.0") is None
    assert isinstance(young.default_at("1.5"), Unknown)


def test_a_computed_default_is_unknown_and_an_unset_one_is_none():
    computed = Setting(engine="vllm", name="z", releases=("1.0",), default=(("1.0", {"computed": True}),))
    assert isinstance(computed.default_at("1.0"), Unknown)
    assert catalogue("sglang").settings["max_running_requests"].default_at("0.5.16") is None


@pytest.mark.parametrize(
    ("engine", "name", "version", "expected"),
    [
        ("sglang", "max_prefill_tokens", "0.5.16", 16384),
        ("sglang", "schedule_conservativeness", "0.5.17", 1.0),
        ("sglang", "cpu_offload_gb", "0.5.23", 0),
        ("vllm", "gpu_memory_utilization", "0.11.0", 0.9),
        ("vllm", "gpu_memory_utilization", "0.24.0", 0.92),
        ("vllm", "stream_interval", "0.32.0", 1),
        ("llama_cpp", "parallel", "0.5.0", -1),
        ("tgi", "max_concurrent_requests", "3.3.6", 128),
        ("lmdeploy", "cache_max_entry_count", "0.18.0", 0.8),
    ],
)
def test_defaults_as_the_engines_own_sources_have_them(engine, name, version, expected):
    assert catalogue(engine).settings[name].default_at(version) == expected


def test_the_common_environment_has_no_release():
    assert catalogue("environment").settings["CUDA_LAUNCH_BLOCKING"].default_at(None) is False


def test_releases_sort_by_number():
    assert sorted(["0.5.9", "0.5.12.post1", "0.5.12", "0.5.2"], key=release_key) == [
        "0.5.2",
        "0.5.9",
        "0.5.12",
        "0.5.12.post1",
    ]
