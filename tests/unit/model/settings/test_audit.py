"""The list of candidates: what was moved and can matter, and nothing else."""

import pytest

from stepline.evidence.origin import Origin, Sourced
from stepline.evidence.run import Run
from stepline.evidence.server import ServerFacts
from stepline.evidence.setting import SettingSaid
from stepline.facts.settings import ENGINES, catalogue
from stepline.model.settings.audit import audit, direction
from stepline.model.settings.conditions import CHECKS

AT = Origin("f", 1, "server_args")


def run(engine="sglang", version="0.5.16", config=None, **facts):
    server = ServerFacts(
        engine=Sourced(engine, AT),
        version=None if version is None else Sourced(version, AT),
        **{name: Sourced(value, AT) for name, value in facts.items()},
    )
    return Run(server=server, model_config=None if config is None else Sourced(config, AT))


def said(name, value, by="server_info", engine="sglang", **more):
    return SettingSaid(engine=engine, name=name, value=value, by=by, origin=AT, **more)


def names(candidates):
    return [candidate.setting.name for candidate in candidates]


@pytest.mark.parametrize(
    "case",
    [
        ("sglang", "0.5.16", "cpu_offload_gb", 4, "raise", "H307", "lower"),
        ("vllm", "0.24.0", "cpu_offload_gb", 3.5, "raise", "H307", "lower"),
        ("sglang", "0.5.23", "disable_overlap_schedule", True, "on", "H301", "off"),
        ("vllm", "0.32.0", "enforce_eager", True, "on", "H302", "off"),
        ("sglang", "0.5.16", "schedule_conservativeness", 2.5, "raise", "S206", "lower"),
        ("vllm", "0.32.0", "gpu_memory_utilization", 0.3, "lower", "S202", "raise"),
        ("sglang", "0.5.16", "triton_attention_num_kv_splits", 1, "lower", "K402", "raise"),
        ("vllm", "0.24.0", "enable_log_requests", True, "on", "H304", "off"),
        ("lmdeploy", "0.18.0", "eager_mode", True, "on", "H302", "off"),
        ("tgi", "3.3.6", "max_waiting_tokens", 200, "raise", "S206", "lower"),
        ("llama_cpp", "0.5.0", "kv_offload", False, "off", "H307", "on"),
    ],
)
def test_a_moved_setting_names_its_cost_and_the_way_back(case):
    engine, version, name, value, moved, cost, back = case
    (found,) = audit(run(engine, version), [said(name, value, engine=engine)])
    assert found.setting.name == name
    assert found.moved == moved
    assert cost in found.costs
    assert found.way_back == back


def test_the_other_way_brings_other_causes_about():
    lower = audit(run(), [said("chunked_prefill_size", 512, asked=8192, changed=True, by="log")])
    higher = audit(run(), [said("chunked_prefill_size", 8192, asked=512, changed=True, by="log")])
    assert lower[0].costs == ("S206",)
    assert higher[0].costs == ("S204",)


def test_defaults_are_no_candidates():
    words = [
        said(name, setting.default_at("0.5.16")) for name, setting in catalogue("sglang").settings.items()
    ]
    usual = [word for word in words if isinstance(word.value, bool | int | float | str | None)]
    assert len(usual) > 300
    assert names(audit(run(), usual)) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_what_cannot_move_decode_speed_is_never_listed(engine):
    known = catalogue(engine)
    words = [said(name, "moved", by="command", engine=engine) for name in known.set_aside]
    assert audit(run(engine, known.releases[-1]), words) == ()


@pytest.mark.parametrize(
    ("name", "value", "facts", "config"),
    [
        ("disable_custom_all_reduce", True, {"tp": 1}, None),
        ("load_balance_method", "round_robin", {"dp": 1}, None),
        ("disable_shared_experts_fusion", True, {}, {"hidden_size": 4096}),
        ("fp8_gemm_runner_backend", "triton", {}, {"quantization_config": {"quant_method": "awq"}}),
        ("speculative_ngram_max_trie_depth", 4, {}, None),
        ("flashinfer_mla_disable_ragged", True, {}, {"hidden_size": 4096}),
        ("prefill_delayer_max_delay_passes", 99, {}, None),
    ],
)
def test_what_cannot_matter_to_this_server_is_not_listed(name, value, facts, config):
    assert audit(run(config=config, **facts), [said(name, value)]) == ()


@pytest.mark.parametrize(
    ("name", "value", "facts", "config"),
    [
        ("disable_custom_all_reduce", True, {"tp": 4}, None),
        ("disable_shared_experts_fusion", True, {}, {"n_routed_experts": 256}),
        ("fp8_gemm_runner_backend", "triton", {}, {"quantization_config": {"quant_method": "fp8"}}),
        ("speculative_ngram_max_trie_depth", 4, {"speculative": "EAGLE"}, None),
    ],
)
def test_the_same_setting_is_listed_where_it_can(name, value, facts, config):
    (found,) = audit(run(config=config, **facts), [said(name, value)])
    assert found.certain


def test_where_nothing_tells_it_stays_and_says_so():
    (found,) = audit(run(), [said("disable_custom_all_reduce", True)])
    assert not found.certain


def test_what_the_engine_changed_comes_first_with_its_words():
    words = [
        said("cpu_offload_gb", 4),
        said("max_running_requests", 900, by="command"),
        said("max_running_requests", 21, by="log", changed=True, words="capped to 21"),
    ]
    first, second = audit(run(), words)
    assert first.setting.name == "max_running_requests"
    assert (first.setting.asked, first.setting.value) == (900, 21)
    assert first.setting.changed.words == "capped to 21"
    assert first.costs == ("S201",)
    assert second.setting.name == "cpu_offload_gb"


def test_a_change_back_to_the_default_costs_nothing():
    words = [said("stream_interval", 8, by="command"), said("stream_interval", 1, by="log", changed=True)]
    assert audit(run(), words) == ()


def test_what_the_engine_may_have_filled_in_comes_last_and_says_so():
    words = [said("max_running_requests", 77), said("cpu_offload_gb", 4)]
    assert [(c.setting.name, c.chosen) for c in audit(run(), words)] == [
        ("cpu_offload_gb", True),
        ("max_running_requests", None),
    ]
    (started,) = audit(run(), [said("max_running_requests", 77, by="command")])
    assert started.chosen is True


def test_an_unknown_release_lists_only_what_somebody_gave():
    assert [c.chosen for c in audit(run(version="9.9"), [said("cpu_offload_gb", 4)])] == [None]
    assert [c.chosen for c in audit(run(version=None), [said("cpu_offload_gb", 4, by="command")])] == [True]


def test_variables_count():
    word = said("CUDA_LAUNCH_BLOCKING", True, by="environment", engine="environment")
    (found,) = audit(run(), [word])
    assert "H308" in found.costs
    off = said("CUDA_LAUNCH_BLOCKING", False, by="environment", engine="environment")
    assert audit(run(), [off]) == ()


def test_an_engine_without_a_catalogue_has_no_list():
    assert audit(run("abacus"), [said("cpu_offload_gb", 4)]) == ()
    assert audit(Run(), [said("cpu_offload_gb", 4)]) == ()


@pytest.mark.parametrize(
    ("base", "value", "expected"),
    [
        (0, 4, "raise"),
        (4, 4.0, None),
        (8, 2, "lower"),
        (False, True, "on"),
        (True, False, "off"),
        (None, "x", "on"),
        ("x", "none", "off"),
        ("a", "b", "set"),
        ([1], [2], "set"),
        (None, False, "off"),
    ],
)
def test_directions(base, value, expected):
    assert direction(base, value) == expected


def test_every_check_answers_without_evidence():
    assert {check(Run()) for check in CHECKS.values()} == {None}
