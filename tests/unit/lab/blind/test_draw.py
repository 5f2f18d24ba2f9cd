"""The sampler: repeatable, ignorant of rules, and every change it names is made."""

import random
import re
from collections import Counter
from pathlib import Path

import pytest

import stepline.lab.blind
from stepline.errors import UsageError
from stepline.findings.registry import RULES
from stepline.lab.blind import arguments, machine
from stepline.lab.blind.arguments import Argument
from stepline.lab.blind.change import Change, Server
from stepline.lab.blind.draw import KINDS, Plan, applied, draw_case
from stepline.lab.blind.plans import plan_of

ARGUMENTS = (
    Argument(flag="--max-running-requests", type="int"),
    Argument(flag="--page-size", type="int", default="16"),
    Argument(flag="--schedule-policy", type="str", choices=("fcfs", "lpm", "random"), default="fcfs"),
    Argument(flag="--disable-overlap-schedule", type="bool", default="False"),
    Argument(
        flag="--enable-prefix-caching", type="bool", default="True", negation="--no-enable-prefix-caching"
    ),
    Argument(flag="--schedule-conservativeness", type="float", default="1.0"),
    Argument(flag="--port", type="int", default="30000"),
    Argument(flag="--download-dir", type="str"),
    Argument(flag="--json-model-override-args", type="json", default="{}"),
)
PLAN = Plan(
    engine="sglang",
    version="0.5.16",
    gpu="NVIDIA H200",
    models={"llama8b": {}, "llama1b": {}},
    twin=Server(model="llama8b", concurrency=(1, 8, 32)),
    arguments=ARGUMENTS,
    environment={"SGLANG_X": ("0", "1")},
)


def test_the_same_seed_and_number_give_the_same_case_and_others_do_not() -> None:
    drawn = [draw_case(PLAN, 7, number) for number in range(60)]
    assert drawn == [draw_case(PLAN, 7, number) for number in range(60)]
    assert len({str(case.changes) for case in drawn}) > 25
    assert drawn != [draw_case(PLAN, 8, number) for number in range(60)]


def test_every_kind_comes_and_pairs_too() -> None:
    drawn = [draw_case(PLAN, 1, number) for number in range(400)]
    kinds = Counter(change.kind for case in drawn for change in case.changes)
    assert set(kinds) == set(KINDS)
    assert 30 < sum(len(case.changes) == 2 for case in drawn) < 110


def test_a_drawn_change_is_made_in_the_server_and_the_context_in_both() -> None:
    contexts = 0
    for number in range(200):
        case = draw_case(PLAN, 3, number)
        assert case.server != case.twin
        assert (case.twin != PLAN.twin) == bool(case.context)
        assert (case.server.model, case.server.input_tokens) == (case.twin.model, case.twin.input_tokens)
        contexts += bool(case.context)
    assert 40 < contexts < 100


def test_the_harness_own_arguments_and_free_texts_are_never_drawn() -> None:
    flags = {each.flag for each in arguments.drawable(ARGUMENTS)}
    assert flags == {
        "--max-running-requests",
        "--page-size",
        "--schedule-policy",
        "--disable-overlap-schedule",
        "--enable-prefix-caching",
        "--schedule-conservativeness",
    }


@pytest.mark.parametrize("argument", list(arguments.drawable(ARGUMENTS)), ids=lambda each: each.flag)
def test_a_value_is_never_the_default(argument: Argument) -> None:
    for seed in range(50):
        change = arguments.change(argument, random.Random(seed))  # noqa: S311
        assert change.value != argument.default
        if argument.type == "int":
            assert int(change.value) >= 1


def test_a_switch_that_is_on_is_switched_off_by_its_own_negation() -> None:
    on = Argument(flag="--a", type="bool", default="True", negation="--no-a")
    assert str(arguments.change(on, random.Random(0))) == "--no-a"  # noqa: S311


def test_neighbours_of_a_gpu_are_not_drawn_where_there_is_none() -> None:
    assert not [change for change in machine.changes(gpu=False) if change.value.startswith(("gpu", "pcie"))]
    assert [change for change in machine.changes(gpu=True) if change.value.startswith("gpu")]


def test_sampling_options_reach_the_requests_by_the_engines_names() -> None:
    server = applied(PLAN.twin, Change(kind="load", name="top_k", value="50"))
    server = applied(server, Change(kind="load", name="min_p", value="0.05"))
    assert server.sampling == {"top_k": 50, "min_p": 0.05}
    assert applied(server, Change(kind="load", name="temperature", value="0.7")).temperature == 0.7


def test_a_plan_with_nothing_in_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = Plan(engine="x", version="1", gpu=None, models={"m": {}}, twin=Server(model="m"), arguments=())
    monkeypatch.setattr("stepline.lab.blind.draw.KINDS", {"argument": 1})
    with pytest.raises(UsageError, match="no argument"):
        draw_case(bare, 1, 1)


def test_the_sampler_knows_no_rule() -> None:
    codes = "|".join(rule.code for rule in RULES)
    for file in Path(stepline.lab.blind.__file__).parent.glob("*.py"):
        assert not re.search(rf"\b({codes})\b", file.read_text()), file.name


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_a_shipped_plan_draws_from_the_release_and_from_what_the_twin_is_started_with(engine: str) -> None:
    plan = plan_of(engine)
    assert len(list(arguments.drawable(plan.arguments))) > 140
    assert plan.environment
    by_flag = {each.flag: each for each in plan.arguments}
    started = "--max-total-tokens" if engine == "sglang" else "--max-num-seqs"
    assert by_flag[started].default == ("24000" if engine == "sglang" else "64")
    names = {change.name for number in range(400) for change in draw_case(plan, 5, number).changes}
    assert len(names) > 100
    assert not names & {"--port", "--host", "--model-path", "--load-format"}
