"""Rows of the long report against the captures they come from."""

import pytest

from stepline.evidence.load import LeverTrial
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.findings.diagnose import diagnose
from stepline.findings.tables import KERNEL_NAME, MAX_KERNELS, MAX_LEVERS
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Setup
from stepline.model.trace import summarise
from stepline.sources.read import read_one_run as read
from stepline.sources.readers import torch_trace
from tests.captures import DATA, RECORDED


@pytest.fixture(scope="module")
def healthy():
    return diagnose(assess(read([DATA / "h200-sglang" / "healthy"]), Setup(gpu="h200")))


def test_the_curve_is_the_law_and_its_floor(healthy):
    law, floor = healthy.step.law, healthy.step.floor
    first, last = law.curve[0], law.curve[-1]
    assert (first.running, last.running) == (0, 64)
    assert first.step_ms == law.fixed_ms
    assert (first.interval.low, first.interval.high) == pytest.approx(
        (law.fixed_interval.low, law.fixed_interval.high)
    )
    assert first.floor_ms is None
    assert last.floor_ms == pytest.approx(floor.strict_ms)
    assert all(point.interval.low < point.step_ms < point.interval.high for point in law.curve)


def test_the_floors_parts_sum_to_it(healthy):
    floor = healthy.step.floor
    assert sum(part.ms for part in floor.parts) + floor.collective_ms == pytest.approx(floor.strict_ms)


def test_the_accounting_adds_up_to_what_it_says(healthy):
    measured = [line.measured_ms for line in healthy.accounting if line.measured_ms is not None]
    floors = [line.floor_ms for line in healthy.accounting if line.floor_ms is not None]
    assert sum(measured) + sum(floors) == pytest.approx(healthy.accounted.wall_ms)
    assert healthy.accounted.running == healthy.step.running


def test_levels_keep_what_was_offered_beside_what_ran():
    answer = diagnose(assess(read([RECORDED / "batch-cap"]), Setup(gpu="h200")))
    assert {level.concurrency: level.running for level in answer.levels} == {1: 1, 8: 8, 16: 8, 64: 8}
    assert next(level.disturbed for level in answer.levels if level.concurrency == 16)


def test_levers_say_what_they_act_on():
    trial = LeverTrial(origin=Origin("t.csv", 2), lever="marlin", running=16, before=30.0, after=30.6)
    (row, *rest) = diagnose(assess(Run(levers=(trial,) * 100), Setup())).levers
    assert len(rest) == MAX_LEVERS - 1
    assert (row.before, row.after, row.unit, row.source) == (30.0, 30.6, "tok/s", "t.csv:2")
    assert row.speedup == pytest.approx(1.02)
    assert "MoE" in row.acts_on


def test_kernels_come_from_the_trace():
    trace = torch_trace.read(DATA / "traces" / "v4_torch_1m.json.gz")
    run = Run(trace=summarise([trace], context_tokens=1_048_576))
    kernels = diagnose(assess(run, Setup())).kernels
    assert len(kernels) == MAX_KERNELS
    assert kernels[0].context_shaped
    assert all(len(kernel.name) <= KERNEL_NAME + 1 for kernel in kernels)
