from types import SimpleNamespace

import pytest

from stepline.findings.detail import Series, Timeline, TimelineMark
from stepline.findings.diagnosis import Accounted, AccountingLine, LawCurvePoint, LawPointView, LawView
from stepline.findings.together import Span
from stepline.report.charts import law_chart, series_charts
from stepline.report.scale import Axis, LogAxis, runs, spread, ticks
from stepline.report.terminal import sparkline
from stepline.report.waterfall import waterfall


def _line(component, measured=None, floor=None):
    return AccountingLine(component=component, measured_ms=measured, floor_ms=floor, evidence="")


def _fall(lines, wall, floor, running=8.0):
    return waterfall(
        SimpleNamespace(
            accounting=tuple(lines),
            accounted=Accounted(running=running, wall_ms=wall, floor_ms=floor),
            step=SimpleNamespace(running=8.0, measured_ms=wall),
        )
    )


def test_parts_begin_where_the_last_one_ended_and_end_at_the_step():
    fall = _fall([_line("gemm", 6.0), _line("attention", 3.0), _line("host gap", 1.0)], 10.0, 4.0)
    bars = {bar.label: bar for bar in fall.bars}
    assert (bars["floor"].left, bars["floor"].width) == (0, 40)
    assert (bars["attention"].left, bars["attention"].width) == (60, 30)
    assert bars["host gap"].left + bars["host gap"].width == 100
    assert (bars["step"].left, bars["step"].width) == (0, 100)
    assert fall.floor_at == 40


def test_a_busy_time_above_the_wall_goes_back_and_stays_inside_the_chart():
    fall = _fall([_line("indexer", 11.0), _line("host gap", -1.0)], 10.0, 1.0)
    bars = {bar.label: bar for bar in fall.bars}
    assert bars["indexer"].width == 100
    assert bars["host gap"].left == pytest.approx(100 * 10 / 11, abs=0.01)
    assert bars["host gap"].text == "-1.00 ms"
    assert all(bar.left >= 0 and bar.left + bar.width <= 100.01 for bar in fall.bars)


def test_without_a_trace_the_floor_is_stacked_and_the_rest_is_unexplained():
    fall = _fall([_line("head", floor=1.0), _line("kv read", floor=2.0), _line("not explained by the floor", 7.0)],
                 10.0, 3.0)  # fmt: skip
    assert [(bar.label, bar.kind, bar.left) for bar in fall.bars] == [
        ("head", "floor", 0),
        ("kv read", "floor", 10),
        ("not explained by the floor", "gap", 30),
        ("step", "total", 0),
    ]


def test_thin_parts_share_a_bar_that_is_their_sum():
    fall = _fall([_line("gemm", 9.9), _line("copy", 0.06), _line("fill", 0.04)], 10.0, None)
    shared = next(bar for bar in fall.bars if bar.label == "2 smaller parts")
    assert shared.ms == pytest.approx(0.1)
    assert [bar.label for bar in fall.bars] == ["gemm", "2 smaller parts", "step"]


def test_another_batch_than_the_loads_is_said():
    assert "the load runs 8" in _fall([_line("gemm", 10.0)], 10.0, 1.0, running=16.0).summary


@pytest.mark.parametrize("largest", [0.0007, 0.9, 1, 3.3, 64, 999, 123456.0])
def test_ticks_are_round_and_reach_the_largest(largest):
    found = ticks(largest)
    assert found[0] == 0
    assert largest <= found[-1] * 1.0001
    assert found[-1] < 2 * largest
    assert 3 <= len(found) <= 7


@pytest.mark.parametrize("largest", [0, -1, float("nan"), float("inf")])
def test_an_axis_without_values_still_stands(largest):
    assert ticks(largest) == (0.0, 1.0)


def test_an_axis_may_run_upwards():
    axis = Axis(10, 200, 0)
    assert [axis.place(value) for value in (0, 5, 10)] == [200, 100, 0]


def test_missing_values_break_a_line_and_are_never_zero():
    assert runs((1.0, None, 2.0, None, None, None, 3.0), bridge=1) == [[(0, 1.0), (2, 2.0)], [(6, 3.0)]]


def _step(**law):
    points = (
        LawPointView(running=1, step_ms=10.0, windows=3),
        LawPointView(running=4, step_ms=20.0, windows=2),
    )
    curve = tuple(
        LawCurvePoint(running=n, step_ms=7 + 3 * n, interval=Span(6 + 3 * n, 8 + 3 * n), floor_ms=n or None)
        for n in (0.0, 2.0, 4.0)
    )
    return SimpleNamespace(law=LawView(instrument="windows", points=points, curve=curve, **law))


def test_the_law_is_drawn_with_points_line_band_and_floor():
    chart = law_chart(_step())
    assert len(chart.dots) == 2
    assert chart.dots[0].y > chart.dots[1].y  # a longer step is higher up
    assert chart.line.count("L") == 2
    assert chart.band.endswith("Z")
    assert chart.floor.count("L") == 1  # no floor at no request
    assert "10.0 ms at 1" in chart.summary


def test_a_law_without_points_is_no_chart():
    assert law_chart(SimpleNamespace(law=LawView(instrument="", points=(), curve=(), refused="none"))) is None


def test_series_of_one_unit_share_a_chart_and_marks_are_shaded():
    timeline = Timeline(
        starts="12:00:00",
        bin_s=1.0,
        series=(
            Series(name="running", unit="requests", source="a", values=(1.0, 2.0, None, 2.0)),
            Series(name="queued", unit="requests", source="a", values=(0.0, None, None, None)),
            Series(name="GPU busy", unit="share", source="b", values=(0.2, 0.4, 0.9, 1.0)),
        ),
        marks=(TimelineMark(text="profiler running", start_s=1.0, end_s=2.0),),
    )
    first, second = series_charts(timeline)
    assert [line.name for line in first.lines] == ["running", "queued"]
    assert first.lines[1].paths == ()
    assert len(first.lines[1].dots) == 1
    assert second.y_ticks[-1].text == "100 %"
    assert len(second.shades) == 1
    assert "GPU busy from 20 % to 100 %" in second.summary


def test_a_flat_law_looks_flat_and_a_steep_one_steep():
    assert sparkline([4.97, 5.0, 5.09]) == "███"
    assert sparkline([2.8, 7.9, 13.5, 25.1]) == "▁▃▄█"
    assert sparkline([0.0]) == ""


def test_places_too_close_are_moved_apart_and_keep_their_order():
    assert spread([50, 10, 12, 48], 10) == [58, 10, 20, 48]
    assert spread([], 10) == []


def test_a_logarithmic_axis_gives_each_decade_the_same_length():
    axis = LogAxis(1.0, 1e4, 0.0, 400.0)
    assert [axis.place(value) for value in (1, 10, 100, 1e4)] == [0, 100, 200, 400]
    assert axis.decades() == (1, 10, 100, 1000, 1e4)
    assert LogAxis(1.0, 1e12, 0, 1).decades(4) == (1, 1e4, 1e8, 1e12)


def test_a_part_shows_its_own_floor_inside_its_bar():
    fall = _fall([_line("gemm", 6.0, 3.0), _line("norm", 2.0), _line("host gap", 2.0)], 10.0, 4.0)
    bars = {bar.label: bar for bar in fall.bars}
    assert bars["gemm"].least == 30
    assert bars["norm"].least is None


def test_a_gap_below_zero_is_explained():
    assert "under the profiler" in _fall([_line("gemm", 11.0), _line("host gap", -1.0)], 10.0, 1.0).summary
    assert "under the profiler" not in _fall([_line("gemm", 9.0), _line("host gap", 1.0)], 10.0, 1.0).summary
