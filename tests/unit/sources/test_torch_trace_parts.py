import numpy as np
import pytest

from stepline.sources.readers import torch_trace
from stepline.sources.readers.torch_trace import parallel, stream
from tests.unit.trace_writer import decode_trace


@pytest.mark.parametrize("cut", [None, 0.6])
def test_two_parts_of_a_file_are_the_file(tmp_path, monkeypatch, cut):
    monkeypatch.setattr(stream, "PIECE_BYTES", 5000)
    path = decode_trace(steps=40).save(tmp_path / "t.json")
    if cut:
        path.write_bytes(path.read_bytes()[: int(cut * path.stat().st_size)])
    whole = torch_trace.read(path)
    joined = parallel.joined(torch_trace.read(path, part=(0, 2)), torch_trace.read(path, part=(1, 2)))
    assert joined.events == whole.events
    assert [doubt.topic for doubt in joined.doubts] == [doubt.topic for doubt in whole.doubts]
    assert (joined.rank, joined.base_ns, joined.devices) == (whole.rank, whole.base_ns, whole.devices)
    for table in ("gpu", "calls", "marks"):
        mine, theirs = getattr(joined, table), getattr(whole, table)
        names = [[trace.strings[i] for i in rows.name] for trace, rows in ((joined, mine), (whole, theirs))]
        assert names[0] == names[1]
        assert np.array_equal(mine.start_ns, theirs.start_ns)
        assert np.array_equal(mine.end_ns, theirs.end_ns)


def test_a_second_process_reads_the_same(tmp_path):
    path = decode_trace(steps=5).save(tmp_path / "t.json.gz")
    assert parallel.read(path).gpu.start_ns.tolist() == torch_trace.read(path).gpu.start_ns.tolist()
