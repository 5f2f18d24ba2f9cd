"""Where real decode steps stand under an H200's roof: whole, by part, and by kernel where the trace has shapes."""

import shutil
from functools import cache
from itertools import pairwise
from tempfile import TemporaryDirectory

import msgspec
import pytest

from stepline.findings.diagnosis import RunDiagnosis
from stepline.report.html import page
from stepline.report.roofline_chart import roofline_chart
from stepline.tasks.diagnose import diagnose
from stepline.tasks.setup import SetupRequest
from tests.captures import DATA, RECORDED

H200_BYTE_S, H200_BF16 = 4.8e12, 9.89e14
FOLDERS = {
    "healthy": DATA / "h200-sglang" / "healthy",
    "nograph": DATA / "h200-sglang" / "nograph",
    "v4_torch_1m": RECORDED / "founding-case",
}


@cache
def diagnosis(name: str) -> RunDiagnosis:
    with TemporaryDirectory() as folder:
        for file in (*FOLDERS[name].iterdir(), DATA / "traces" / f"{name}.json.gz"):
            shutil.copy(file, folder)
        return diagnose([folder], SetupRequest(gpu="h200")).chosen


def points(name: str) -> dict:
    view = diagnosis(name).roofline
    assert view.running == diagnosis(name).accounted.running
    return {point.name: point for point in view.points}


@pytest.mark.parametrize("name", FOLDERS)
def test_nothing_is_faster_than_its_floor_and_no_floor_below_its_bytes(name):
    for point in points(name).values():
        assert 0 < point.floor_ms <= point.ms
        assert point.floor_ms >= 1e3 * point.bytes / H200_BYTE_S * 0.999


def test_a_healthy_step_is_near_the_roof_and_so_are_its_products():
    found = points("healthy")
    assert list(found) == ["step", "gemm", "attention"]
    assert 1.2 < found["gemm"].ms / found["gemm"].floor_ms < 1.5
    assert found["gemm"].bytes == pytest.approx(15.0e9, rel=0.01)  # Llama-3.1-8B in bf16 less its embedding
    assert found["gemm"].flops / found["gemm"].bytes == pytest.approx(
        32, rel=0.01
    )  # the batch, at 2 B a weight


def test_work_of_the_configured_context_hangs_thousands_of_times_below():
    found = points("v4_torch_1m")
    assert found["indexer"].ms / found["indexer"].floor_ms > 1000
    assert found["moe"].ms / found["moe"].floor_ms < 2


def test_kernels_have_floors_where_the_trace_has_shapes_and_none_in_graphs():
    eager = [kernel for kernel in diagnosis("nograph").kernels if kernel.floor_ms is not None]
    assert len(eager) == 5
    for kernel in eager:
        assert kernel.component == "gemm"
        assert kernel.floor_ms == pytest.approx(kernel.busy_ms * kernel.bytes_s / H200_BYTE_S, rel=1e-6)
        assert 1.1 < kernel.busy_ms / kernel.floor_ms < 1.7
    assert all(kernel.floor_ms is kernel.bytes_s is None for kernel in diagnosis("healthy").kernels)


def test_what_adds_up_a_split_product_is_not_taken_for_the_product():
    (reduce,) = [kernel for kernel in diagnosis("nograph").kernels if "splitKreduce" in kernel.name]
    assert (reduce.bytes_s, reduce.flop_s, reduce.floor_ms) == (None, None, None)


def test_the_accounting_shows_the_floor_of_each_part_that_has_one():
    lines = {line.component: line for line in diagnosis("healthy").accounting}
    assert lines["gemm"].floor_ms == pytest.approx(3.13, abs=0.01)
    assert lines["norm"].floor_ms is None


def test_the_chart_puts_dots_under_the_roof_with_labels_apart():
    chart = roofline_chart(diagnosis("nograph").roofline)
    assert all(dot.y >= dot.roof_y for dot in chart.dots)  # pixels count downwards
    labels = sorted(dot.label_y for dot in chart.dots if dot.label_y is not None)
    assert len(labels) == 3
    assert min(b - a for a, b in pairwise(labels)) >= 11.9
    assert chart.summary.startswith("Under the roof of 4.80 TB/s: step at 10.0× its floor")
    assert [roof.name for roof in chart.roofs] == ["bf16"]


def test_without_products_or_peaks_there_is_no_chart():
    view = diagnosis("healthy").roofline
    nothing = tuple(msgspec.structs.replace(point, flops=0.0) for point in view.points)
    assert roofline_chart(msgspec.structs.replace(view, points=nothing)) is None
    assert roofline_chart(msgspec.structs.replace(view, peak_flop_s={})) is None


def test_without_a_trace_the_step_alone_stands_under_the_roof():
    told = diagnose(RECORDED / "batch-cap", SetupRequest(gpu="h200")).chosen
    assert [point.kind for point in told.roofline.points] == ["step"]
    assert told.roofline.running == told.step.running
    assert diagnose(RECORDED / "batch-cap").chosen.roofline is None


def test_collectives_have_the_latency_of_their_all_reduces_as_floor_and_no_place_on_the_chart():
    told = diagnose(DATA / "h200-live" / "tp2_nop2p").chosen
    found = {point.name: point for point in told.roofline.points}
    slow = found["communication"]
    assert slow.ms / slow.floor_ms > 50
    assert slow.bytes == slow.flops == 0
    assert "communication" not in [dot.name for dot in roofline_chart(told.roofline).dots]
    shown = page(told)
    assert "<code>nvidia-smi topo -p2p r</code>" in shown
    assert '<th scope="row">communication</th>' in shown
