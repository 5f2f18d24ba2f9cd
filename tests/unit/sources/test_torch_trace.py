import gzip
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepline.errors import UnreadableEvidence
from stepline.sources.readers.torch_trace import read
from tests.unit.trace_writer import TraceWriter, decode_trace

WHOLE = decode_trace(steps=40).text()
KERNELS = 240


def save(tmp_path, text, name="trace.json"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_columns_of_a_whole_trace(tmp_path):
    trace = read(save(tmp_path, WHOLE))
    assert (len(trace.gpu), len(trace.calls), len(trace.marks)) == (KERNELS, 80, 40)
    assert trace.doubts == ()
    assert trace.rank == 0
    assert trace.world_size == 2
    assert trace.devices[0].sms == 132
    assert int((trace.gpu.end_ns - trace.gpu.start_ns).sum()) == 40 * 770_000
    assert trace.gpu.grid[0].tolist() == [132, 1, 1]


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz", "trace"])
@pytest.mark.parametrize("zipped", [True, False])
def test_content_decides_not_the_name(tmp_path, name, zipped):
    data = gzip.compress(WHOLE.encode()) if zipped else WHOLE.encode()
    assert len(read(save(tmp_path, data, name)).gpu) == KERNELS


@pytest.mark.parametrize("zipped", [True, False])
def test_a_truncated_file_yields_what_is_whole(tmp_path, zipped):
    data = WHOLE.encode()
    data = gzip.compress(data)[:-600] if zipped else data[: len(data) // 2]
    trace = read(save(tmp_path, data))
    assert 20 < len(trace.gpu) < KERNELS
    assert [doubt.topic for doubt in trace.doubts] == ["truncated"]


def broken(old, new, count=1):
    assert old in WHOLE
    return WHOLE.replace(old, new, count)


@pytest.mark.parametrize(
    ("text", "kernels"),
    [
        (broken('"est. achieved occupancy %": 0', '"est. achieved occupancy %": Infinity'), KERNELS),
        (broken('"est. achieved occupancy %": 0', '"est. achieved occupancy %": inf'), KERNELS),
        (broken('"est. achieved occupancy %": 0', '"est. achieved occupancy %": -nan', 99), KERNELS),
        (broken("RMSNormKernel", "RMS\x01Norm\nKernel"), KERNELS),
        (broken("RMSNormKernel", r"C:\RMSNorm\Kernel"), KERNELS),
        (broken("RMSNormKernel", 'RMS"Norm", "x" Kernel'), KERNELS),
        (broken('"block": [128, 1, 1],', '"block": [128, 1, 1,],'), KERNELS),
        (broken('\n  ],\n  "traceName"', ',\n  ],\n  "traceName"'), KERNELS),
        (broken('"correlation": 1003', '"correlation": "1003"', 9), KERNELS),
        (broken('"grid": [8, 1, 1]', '"grid": "grid(8,)"', 3), KERNELS),
        (broken('"dur": 10.0', '"dur": "10.000"', 3), KERNELS),
    ],
)  # fmt: skip
def test_damage_that_can_be_mended(tmp_path, text, kernels):
    trace = read(save(tmp_path, text))
    assert len(trace.gpu) == kernels
    assert trace.skipped == 0
    assert trace.rank == 0


def test_invalid_utf8_in_a_name(tmp_path):
    trace = read(save(tmp_path, WHOLE.encode().replace(b"RMSNormKernel", b"RMS\xff\xfeKernel", 1)))
    assert len(trace.gpu) == KERNELS
    assert any("RMS�" in text for text in trace.strings)


def test_a_broken_event_is_skipped_and_counted(tmp_path):
    trace = read(save(tmp_path, broken('"dur": 400.0, "args"', '"dur": 400.0 @@ "args"', 2)))
    assert len(trace.gpu) == KERNELS - 2
    assert trace.skipped == 2
    assert [doubt.topic for doubt in trace.doubts] == ["damaged"]


@pytest.mark.parametrize("dur", ["-5.0", "9223372036854775", "1e300"])
def test_impossible_durations_are_left_out(tmp_path, dur):
    trace = read(save(tmp_path, broken('"dur": 400.0', f'"dur": {dur}')))
    assert len(trace.gpu) == KERNELS - 1
    assert [doubt.topic for doubt in trace.doubts] == ["times"]


def test_events_out_of_order(tmp_path):
    writer = decode_trace(steps=10)
    writer.events.reverse()
    trace = read(writer.save(tmp_path / "t.json"))
    assert (np.diff(trace.gpu.start_ns) >= 0).all()


def test_the_2021_layout(tmp_path):
    kernel = {"device": 0, "stream": 7, "correlation": 5, "external id": 12, "grid": [1, 2, 3]}
    operator = {"External id": 12, "Input Dims": [[2, 3]]}
    events = [
        {"ph": "X", "cat": cat, "name": "k", "pid": 0, "tid": tid, "ts": ts, "dur": 25, "args": args}
        for cat, tid, ts, args in (
            ("Kernel", "stream 7", 1623142623460111, kernel),
            ("Runtime", "25738", 1623142623460100, {"correlation": 5}),
            ("Operator", "25738", 1623142623460090, operator),
        )
    ]
    trace = read(save(tmp_path, json.dumps({"schemaVersion": 1, "traceEvents": events}, indent=2)))
    assert trace.gpu.start_ns.tolist() == [1623142623460111000]
    assert trace.gpu.operator.tolist() == [12]
    assert trace.gpu.grid.tolist() == [[1, 2, 3]]
    assert trace.calls.thread.tolist() == trace.operators.thread.tolist() == [25738]
    assert trace.base_ns is None


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 2 * 10**18), min_size=1, max_size=20), st.integers(0, 10**9))
def test_times_are_exact_to_the_nanosecond(tmp_path_factory, starts, length):
    def us(ns):
        return f"{ns // 1000}.{ns % 1000:03d}"

    events = ",\n".join(
        f'{{"ph": "X", "cat": "kernel", "name": "k", "ts": {us(ns)}, "dur": {us(length)}}}' for ns in starts
    )
    path = tmp_path_factory.mktemp("t") / "t.json"
    path.write_text(f'{{"traceEvents": [{events}]}}')
    trace = read(path)
    assert trace.gpu.start_ns.tolist() == sorted(starts)
    assert set((trace.gpu.end_ns - trace.gpu.start_ns).tolist()) == {length}


def test_an_event_list_without_a_header(tmp_path):
    writer = TraceWriter()
    writer.kernel("k", 10.0, 5.0)
    assert len(read(save(tmp_path, json.dumps(writer.events))).gpu) == 1


@pytest.mark.parametrize("content", ["", "{}", "hello", '{"schemaVersion": 1}', b"\x1f\x8b\x08nonsense"])
def test_what_is_no_trace_is_refused_in_a_sentence(tmp_path, content):
    path = save(tmp_path, content)
    with pytest.raises(UnreadableEvidence, match="not a PyTorch profiler trace"):
        read(path)
