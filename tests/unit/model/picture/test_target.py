"""Who is under diagnosis, from names as logs and people write them."""

import msgspec
import pytest

from stepline.errors import UnknownFact
from stepline.evidence.origin import Origin, Sourced
from stepline.evidence.run import Run
from stepline.evidence.server import ServerFacts
from stepline.evidence.trace import RankTrace, TraceDevice, TraceSummary
from stepline.findings.diagnose import diagnose
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Setup, floor_of
from stepline.model.picture.target import find_target
from stepline.model.signs.kernel_paths import weights_floor_ms
from tests.rules.server import Stage, server
from tests.rules.traces import with_trace


def target(setup=None, **said):
    facts = {name: Sourced(value, Origin("server.log", 1)) for name, value in said.items()}
    return find_target(Run(server=ServerFacts(**facts)), setup or Setup())


def floor_ms(found):
    return floor_of(found, 8, 4096, "strict").total_ms


@pytest.mark.parametrize("spelled", ["float8_e4m3fn", "fp8_e5m2", "torch.float8_e4m3fnuz"])
def test_a_cache_type_in_pytorchs_words_keeps_the_floor(spelled):
    found, missing = target(gpu="NVIDIA H200", model="meta-llama/Llama-3.1-8B", kv_dtype=spelled)
    plain, _ = target(gpu="NVIDIA H200", model="meta-llama/Llama-3.1-8B")
    assert missing is None
    assert floor_ms(found) < floor_ms(plain)


def test_an_unknown_cache_type_costs_the_floor_and_names_the_known_ones():
    found, missing = target(gpu="NVIDIA H200", model="meta-llama/Llama-3.1-8B", kv_dtype="float7")
    assert missing is None
    with pytest.raises(UnknownFact, match="'float7' is not known; known: bf16, fp8"):
        floor_ms(found)


def test_where_the_evidence_names_an_unknown_gpu_the_one_given_counts():
    found, missing = target(Setup(gpu="h200"), gpu="NVIDIA Graphics Device", model="Qwen/Qwen3-8B")
    assert (found.gpu.name, missing) == ("NVIDIA H200 SXM", None)


def test_a_trace_names_the_gpu_where_no_other_evidence_does():
    trace = TraceSummary(
        ranks=(
            RankTrace(
                file="t.json",
                events=1,
                gpu_events=1,
                span_ms=1.0,
                busy_ms=1.0,
                device=TraceDevice(name="NVIDIA H200"),
            ),
        )
    )
    found, _ = find_target(Run(trace=trace), Setup(gpu="a100"))
    assert found.gpu.name == "NVIDIA H200 SXM"
    said = ServerFacts(gpu=Sourced("NVIDIA L4", Origin("server.log", 1)))
    assert find_target(Run(server=said, trace=trace), Setup())[0].gpu.name == "NVIDIA L4"


def test_both_unknown_gpus_are_named_with_the_nearest():
    found, missing = target(Setup(gpu="h2000x"), gpu="NVIDIA H100 CNX", model="Qwen/Qwen3-8B")
    assert found.gpu is None
    assert found.architecture is not None
    assert "'h2000x'" in missing
    assert "'NVIDIA H100 CNX'" in missing
    assert "NVIDIA H200 SXM" in missing


def test_a_base_that_stands_in_for_a_derived_model_is_said():
    found, missing = target(gpu="NVIDIA H200", model="acme/Qwen3-8B-FP8-dynamic")
    assert missing is None
    assert any("Qwen/Qwen3-8B, whose config stands in" in part for part in found.architecture.not_counted)
    assert any("stands in" in part for part in floor_of(found, 1, 100, "strict").not_counted)


@pytest.mark.parametrize("broken", [{"kv_dtype": "float7_e3m3"}, {"ep": 7}])
def test_what_allows_no_floor_costs_it_everywhere_and_no_more(broken):
    """A trace, whose rules ask for floors of their own, and a server that no floor can be computed for."""
    names = {"gpu": "NVIDIA H200", "model": "Qwen/Qwen3-30B-A3B", "tp": 4, **broken}
    facts = {name: Sourced(value, Origin("server.log", 1)) for name, value in names.items()}
    run = with_trace(server([Stage(running=8, step_ms=20.0, context=4000)]), batch=8, busy_ms=19.0)
    run = msgspec.structs.replace(run, server=msgspec.structs.replace(run.server, **facts), model_config=None)
    seen = assess(run, Setup())
    assert seen.floors is None
    assert seen.floor_at(8, "strict") is None
    assert weights_floor_ms(seen, 8) is None
    answer = diagnose(seen)
    assert answer.step.measured_ms == pytest.approx(20.0, rel=0.2)
