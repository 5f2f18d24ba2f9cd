"""What two runs may say together: one setting apart, one load, one context; anything else is said and not computed."""

import msgspec
import pytest

from stepline.evidence.evidence import Evidence
from stepline.evidence.load import LoadLevel
from stepline.evidence.origin import Origin, Sourced
from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport
from stepline.evidence.server import ServerFacts
from stepline.evidence.start import Start
from stepline.findings.diagnosis import Diagnosis
from stepline.findings.several import diagnose_runs
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Setup

HERE = Origin("server_info.json")
WHOLE = {
    "model_path": "/m/ling-mini",
    "tp_size": "1",
    "max_running_requests": "64",
    "random_seed": "1",
    "port": "30000",
}


def level(concurrency: float, tok_s: float, **more: object) -> LoadLevel:
    told = LoadLevel(
        origin=Origin("bench.json"),
        concurrency=concurrency,
        tok_s=tok_s,
        tpot_ms=1000 * concurrency / tok_s,
        ttft_ms=100.0,
        requests=int(10 * concurrency),
        input_tokens=500.0,
        output_tokens=200.0,
        tool="bench",
    )
    return msgspec.structs.replace(told, **more)


def run(name: str, *levels: LoadLevel, environment: dict[str, str] | None = None, **arguments: str) -> Run:
    known = {**WHOLE, **arguments}
    return Run(
        id=name,
        server=ServerFacts(engine=Sourced("sglang", HERE), model=Sourced(known["model_path"], HERE)),
        start=Start(origin=HERE, arguments=known, environment=environment or {}),
        levels=levels,
    )


def told(*runs: Run) -> Diagnosis:
    return diagnose_runs([assess(one, Setup()) for one in runs], Evidence(runs=runs))


def test_one_setting_apart_is_compared_from_the_smaller_value() -> None:
    (one,) = told(
        run("b", level(8, 900), tp_size="2"), run("a", level(8, 600), random_seed="9", port="1")
    ).comparisons
    assert (one.setting, one.before, one.after) == ("tp_size", ("a",), ("b",))
    assert one.effect.speedup == pytest.approx(1.5, rel=0.01)
    assert one.effect.interval.low < 1.5 < one.effect.interval.high


def test_what_follows_from_a_setting_is_no_second_one() -> None:
    runs = (
        run("a", level(8, 600), mem_fraction_static="0.88", cuda_graph_bs="1, 2, 4"),
        run("b", level(8, 900), tp_size="2", mem_fraction_static="0.83", cuda_graph_bs="1, 2"),
    )
    assert [one.setting for one in told(*runs).comparisons] == ["tp_size"]


def test_two_settings_apart_are_not_compared_and_both_are_named() -> None:
    answer = told(run("a", level(8, 600)), run("b", level(8, 900), tp_size="2", max_running_requests="8"))
    assert answer.comparisons == ()
    (pair,) = answer.not_comparable
    assert pair.differs == ("tp_size 1 → 2", "max_running_requests 64 → 8")


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (level(16, 900), "16"),
        (level(8, 900, input_tokens=4000.0), "prompt"),
        (level(8, 900, tool="another"), "rates come from"),
    ],
    ids=["another concurrency", "another workload", "another client"],
)
def test_without_a_shared_load_nothing_is_compared(other: LoadLevel, why: str) -> None:
    answer = told(run("a", level(8, 600)), run("b", other, tp_size="2"))
    assert answer.comparisons == ()
    assert why in answer.not_comparable[0].reason


def test_the_environment_is_one_thing_however_many_variables_it_has() -> None:
    set_so = {"NCCL_ALGO": "Ring", "NCCL_PROTO": "LL"}
    (one,) = told(run("a", level(8, 600)), run("b", level(8, 601), environment=set_so)).comparisons
    assert one.setting == "environment"
    assert [(cause.code, cause.says) for cause in one.answers] == [("C501", "ruled out")]


def test_repeats_are_pooled_and_widen_or_narrow_the_interval() -> None:
    alone = told(run("a", level(8, 600)), run("b", level(8, 700), tp_size="2")).comparisons[0]
    answer = told(
        run("a", level(8, 600)),
        run("a2", level(8, 602), random_seed="5"),
        run("b", level(8, 700), tp_size="2"),
        run("b2", level(8, 702), tp_size="2", random_seed="6"),
    )
    assert [one.runs for one in answer.repeats] == [("a", "a2"), ("b", "b2")]
    (one,) = answer.comparisons
    assert one.runs == ("a", "a2", "b", "b2")
    assert (
        one.effect.interval.high - one.effect.interval.low
        < alone.effect.interval.high - alone.effect.interval.low
    )


def test_a_difference_that_nobody_recorded_is_called_so() -> None:
    (one,) = told(run("a", level(8, 600)), run("b", level(8, 800))).comparisons
    assert one.setting == "something that was not recorded"
    assert one.answers == ()


def test_of_a_server_that_nobody_described_nothing_is_said() -> None:
    bare = Run(id="b", levels=(level(8, 900),))
    answer = told(run("a", level(8, 600)), bare)
    assert answer.comparisons == ()
    assert "nothing was recorded of the server of b" in answer.not_comparable[0].reason


def log_only(name: str, tok_s: float, usage: float | None, **arguments: str) -> Run:
    lines = tuple(
        DecodeReport(
            seq=seq,
            origin=Origin("vllm.log", seq),
            time_s=1e9 + 10.0 * seq,
            running=4,
            queued=0,
            tok_s=tok_s + seq % 3,
            prefill_tok_s=300.0,
            pool_usage=usage,
            instrument="interval",
        )
        for seq in range(1, 9)
    )
    return msgspec.structs.replace(run(name, **arguments), decodes=lines)


def test_two_logs_over_fixed_times_are_compared_at_one_batch_and_context() -> None:
    (one,) = told(log_only("a", 400, 0.2), log_only("b", 200, 0.2, tp_size="2")).comparisons
    assert one.effect.instrument.startswith("generation throughput over fixed times")
    assert one.effect.speedup == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("usage", [0.9, None], ids=["another context", "a context that no line tells"])
def test_two_logs_of_unlike_contexts_are_not(usage: float | None) -> None:
    assert told(log_only("a", 400, 0.2), log_only("b", 200, usage, tp_size="2")).comparisons == ()


def test_the_heaviest_run_is_chosen_and_of_those_the_latest() -> None:
    early = run("early", level(8, 600, start_s=1000.0, end_s=1100.0), tp_size="4")
    late = run("late", level(8, 700, start_s=5000.0, end_s=5100.0), tp_size="2")
    light = run("light", level(1, 100, start_s=9000.0, end_s=9100.0))
    answer = told(late, early, light)
    assert answer.chosen_run == "late"
    assert "heaviest load" in answer.chosen_because
