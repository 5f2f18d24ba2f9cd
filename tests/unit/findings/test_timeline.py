import pytest

from stepline.evidence.gpu import GpuSample
from stepline.evidence.origin import Origin
from stepline.evidence.run import Run
from stepline.evidence.scheduler import DecodeReport, SchedulerEvent
from stepline.findings.timeline import BINS, timeline
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Setup

START = 1_800_000_000.0


def _decode(seq, at, running, **more):
    return DecodeReport(seq=seq, origin=Origin("server.log", seq), time_s=START + at, running=running, **more)


def _sample(at, busy, gpu=0):
    return GpuSample(origin=Origin("gpm.csv", 1), time_s=START + at, graphics_busy=busy, gpu=gpu)


def _event(seq, at, kind):
    return SchedulerEvent(
        seq=seq,
        origin=Origin("server.log", seq),
        kind=kind,
        text="",
        time_s=None if at is None else START + at,
    )


def _timeline(**parts):
    return timeline(assess(Run(**parts), Setup()))


def _values(found, name):
    return next(series.values for series in found.series if series.name == name)


def test_bins_hold_means_and_nothing_where_nothing_was_said():
    found = _timeline(decodes=(_decode(1, 0, 4), _decode(2, 0.5, 8), _decode(3, 3, 8)))
    assert found.bin_s == 1.0
    assert _values(found, "running batch") == (6.0, None, None, 8.0)
    assert [series.name for series in found.series] == ["running batch"]  # no queue, rate or pool was stated


def test_a_long_log_is_still_few_bins():
    found = _timeline(decodes=tuple(_decode(n, 10.0 * n, 8) for n in range(5000)))
    assert len(_values(found, "running batch")) == BINS
    assert found.bin_s == pytest.approx(49_990 / (BINS - 1))


def test_gpu_samples_share_the_logs_bins_and_its_span():
    decodes = tuple(_decode(n, float(n), 8) for n in range(30))
    samples = tuple(_sample(at - 20.0, 0.5) for at in range(70))
    found = _timeline(decodes=decodes, gpu_samples=samples)
    assert len(_values(found, "GPU busy")) == len(_values(found, "running batch")) == 30


def test_idle_neighbours_are_left_out():
    samples = tuple(_sample(float(n), 0.9 if gpu == 0 else 0.0, gpu) for n in range(10) for gpu in (0, 1))
    assert set(_values(_timeline(gpu_samples=samples), "GPU busy")) == {0.9}


def test_the_profiler_and_events_are_marked():
    decodes = tuple(_decode(10 * n, float(n), 8) for n in range(1, 11))
    events = (_event(25, 2.5, "profile-start"), _event(45, 4.5, "profile-end"), _event(61, 6.0, "retraction"))
    marks = _timeline(decodes=decodes, events=(*events, _event(62, None, "crash"))).marks
    assert [(mark.text, mark.start_s, mark.end_s) for mark in marks] == [
        ("profiler running", 1.5, 3.5),
        ("retraction", 5.0, 5.0),
    ]


def test_without_a_clock_there_is_no_timeline():
    assert _timeline(decodes=(DecodeReport(seq=1, origin=Origin("server.log", 1), running=8),)) is None
    assert _timeline() is None
