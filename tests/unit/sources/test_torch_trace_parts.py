"""However a file is divided and decoded, it reads the same."""

import gzip
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import msgspec
import numpy as np
import pytest

from stepline.sources.readers import torch_trace
from stepline.sources.readers.torch_trace import share, stream
from stepline.sources.readers.torch_trace.helper import CannotShare, Helper
from tests.unit.trace_writer import decode_trace

REAL = sorted((Path(__file__).parents[2] / "data" / "traces").glob("*.json.gz"))


def assert_same(one, other):
    for field in fields(one):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if hasattr(mine, "__dataclass_fields__"):
            for column in fields(mine):
                assert np.array_equal(getattr(mine, column.name), getattr(theirs, column.name)), column.name
        else:
            assert mine == theirs, field.name


@pytest.fixture
def by_two(monkeypatch):
    """Read by two processes, whatever the size, in many blocks."""
    monkeypatch.setattr(torch_trace, "SPLIT_FROM_BYTES", 0)
    monkeypatch.setattr(stream, "PIECE_BYTES", 5000)
    return lambda path: torch_trace.read(path, processes=2)


def long_trace(tmp_path, *, spoil, steps=400):
    path = tmp_path / "t.json"
    path.write_text(spoil(decode_trace(steps).text()))
    return path


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text,
        lambda text: text[: int(0.6 * len(text))],
        lambda text: text.replace('"dur": 400.0, "args"', '"dur": 400.0 @@ "args"', 50),
        lambda text: text.replace('"dur": 400.0', '"dur": -400.0', 50),
        lambda text: text.replace('"tid": 1,', '"tid": "main",'),
    ],
    ids=["whole", "cut short", "damaged", "odd times", "named threads"],
)
def test_two_processes_read_as_one(tmp_path, by_two, spoil):
    path = long_trace(tmp_path, spoil=spoil)
    assert_same(by_two(path), torch_trace.read(path))


@pytest.mark.parametrize("steps", [2, 400], ids=["their end in the helper's first block", "far behind"])
def test_a_list_behind_the_events_is_none_of_them(tmp_path, by_two, steps):
    more = ",".join('{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1}' for _ in range(5000))
    path = long_trace(
        tmp_path,
        spoil=lambda text: text.replace('"traceName"', f'"more": [{more}], "traceName"'),
        steps=steps,
    )
    trace = by_two(path)
    assert trace.events == 9 * steps
    assert_same(trace, torch_trace.read(path))


def test_a_lost_helper_is_noticed():
    with closing(Helper()) as helper:
        helper._process.kill()
        helper._process.join()
        with pytest.raises(CannotShare):
            helper.finish()
        with pytest.raises(CannotShare):
            helper.take(0, [b"[]"])


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_event_by_event_reads_as_block_by_block(path, monkeypatch):
    monkeypatch.setattr(stream, "PIECE_BYTES", 1 << 16)
    fast = torch_trace.read(path)

    def refuse(text, *, text_times):
        raise msgspec.DecodeError

    monkeypatch.setattr(share, "decode", refuse)
    assert_same(torch_trace.read(path), fast)


def test_numbers_beyond_64_bits_are_not_recorded(tmp_path):
    text = decode_trace(steps=2).text().replace('"correlation": 1001', f'"correlation": {10**30}')
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(text.replace("[8, 1, 1]", f"[{10**30}, 1, 1]").encode()))
    gpu = torch_trace.read(path).gpu
    assert (gpu.correlation == -1).sum() == 5
    assert (gpu.grid == -1).all(axis=1).sum() == 2
