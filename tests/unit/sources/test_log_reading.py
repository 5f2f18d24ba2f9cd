"""Whole log files: line ends, colours, progress bars, JSON records, compression and damage."""

import contextlib
import gzip
import json
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepline.errors import UnreadableEvidence
from stepline.evidence.run import Run
from stepline.sources.read import read_one_run as read

LINE = "[2025-11-29 16:31:54 TP0] Decode batch, #running-req: {}, #token: 5, token usage: 0.10, cuda graph: True, gen throughput (token/s): 84.20, #queue-req: 0"  # noqa: E501


def run_of(folder: Path, content: bytes, name: str = "server.log") -> Run:
    (folder / name).write_bytes(content)
    return read([folder / name])


def running(run: Run) -> list[int]:
    return [record.running for record in run.decodes]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_line_ends(tmp_path: Path, end: bytes) -> None:
    run = run_of(tmp_path, end.join(LINE.format(n).encode() for n in (1, 2, 3)))
    assert running(run) == [1, 2, 3]
    assert [record.origin.line for record in run.decodes] == [1, 2, 3]


def test_colours_are_taken_off(tmp_path: Path) -> None:
    coloured = (
        LINE.format(7)
        .replace("#running-req", "\x1b[1;33m#running-req\x1b[0m")
        .replace("84.20", "\x1b[32m84.20\x1b[0m")
    )
    assert running(run_of(tmp_path, coloured.encode())) == [7]


def test_a_progress_bar_before_a_line_does_not_hide_it(tmp_path: Path) -> None:
    bar = "\r  0%|          | 0/2 [00:00<?, ?it/s]\r100%|██████████| 2/2 [00:01<00:00]\r"
    run = run_of(tmp_path, ("x\n" + bar + LINE.format(3) + "\n" + LINE.format(4)).encode())
    assert running(run) == [3, 4]
    assert [record.origin.line for record in run.decodes] == [2, 3]


@pytest.mark.parametrize(
    "record",
    [
        {"asctime": "2025-11-29 16:31:54,250", "levelname": "INFO", "message": LINE.format(6)[26:]},
        {"timestamp": 1764433914.25, "msg": LINE.format(6)[26:]},
        {"ts": 1764433914250, "event": LINE.format(6)[26:]},
        {"log": LINE.format(6) + "\n", "stream": "stderr", "time": "2025-11-29T16:31:54.25Z"},
    ],
    ids=["logging config", "seconds", "milliseconds", "Docker"],
)
def test_json_records(tmp_path: Path, record: dict[str, object]) -> None:
    run = run_of(tmp_path, (json.dumps(record) + "\n").encode() * 3)
    assert running(run) == [6, 6, 6]
    assert run.decodes[0].time_s == pytest.approx(1764433914.25, abs=0.26)


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_compressed(tmp_path: Path, compress: object) -> None:
    content = "\n".join(LINE.format(n) for n in range(500)).encode()
    assert callable(compress)
    assert running(run_of(tmp_path, compress(content), "server.log.1")) == list(range(500))


def test_what_stands_before_the_damage_of_a_compressed_log_is_kept(tmp_path: Path) -> None:
    whole = gzip.compress("\n".join(LINE.format(n * 7919 % 10007) for n in range(20_000)).encode())
    run = run_of(tmp_path, whole[: len(whole) // 2])
    assert 5_000 < len(run.decodes) < 15_000
    assert [doubt.topic for doubt in run.doubts if doubt.topic == "damaged-file"] == ["damaged-file"]


def test_a_log_longer_than_a_chunk_loses_no_line_at_the_seams(tmp_path: Path) -> None:
    count = 60_000
    run = run_of(tmp_path, "\n".join(LINE.format(n) for n in range(count)).encode())
    assert sum(record.windows for record in run.decodes) == count
    assert sum(record.running * record.windows for record in run.decodes) == count * (count - 1) // 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=2000), st.booleans())
def test_no_bytes_raise_anything_but_unreadable(tmp_path: Path, noise: bytes, known: bool) -> None:
    path = tmp_path / "noise"
    path.write_bytes((LINE.format(1).encode() + b"\n" if known else b"") + noise)
    with contextlib.suppress(UnreadableEvidence):
        read([path])
