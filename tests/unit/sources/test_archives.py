"""Archives and encodings: what is inside is read as if it lay there."""

import tarfile
import zipfile
from pathlib import Path

import pytest

from stepline.errors import UnreadableEvidence
from stepline.sources.read import read_one_run as read

TABLE = "concurrency,tok_s\n1,40\n8,210\n"


def levels(path: Path) -> list[float | None]:
    return [level.tok_s for level in read([path]).levels]


def test_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("run/table.csv", TABLE)
        archive.writestr("../outside.csv", TABLE)
        archive.writestr(".hidden/x.csv", TABLE)
    assert levels(tmp_path / "all.zip") == [40, 210]
    assert not (tmp_path.parent / "outside.csv").exists()


@pytest.mark.parametrize("ending", ["tar", "tar.gz"])
def test_a_tar(tmp_path: Path, ending: str) -> None:
    (tmp_path / "table.csv").write_text(TABLE)
    path = tmp_path / f"all.{ending}"
    with tarfile.open(path, "w:gz" if ending.endswith("gz") else "w") as archive:
        archive.add(tmp_path / "table.csv", "a/table.csv")
    assert levels(path) == [40, 210]


def test_a_damaged_archive_says_so(tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("table.csv", TABLE * 100)
    content = bytearray(path.read_bytes())
    content[60:80] = b"\xff" * 20
    path.write_bytes(bytes(content))
    with pytest.raises(UnreadableEvidence):
        read([path])


def test_a_log_that_a_shell_wrote_in_utf_16(tmp_path: Path) -> None:
    line = (
        "[2026-01-02 03:04:0{0} TP0] Decode batch, #running-req: 4, #token: 2560, token usage: 0.10, "
        "cuda graph: True, gen throughput (token/s): 210.00, #queue-req: 0\r\n"
    )
    (tmp_path / "server.log").write_bytes("".join(line.format(i) for i in range(3)).encode("utf-16"))
    assert len(read([tmp_path]).decodes) == 3


def test_json_behind_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(b'\xef\xbb\xbf[{"concurrency": 4, "tok_s": 50}]')
    assert levels(tmp_path) == [50]


def test_json_lines_with_others_among_them(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(
        '{"concurrency": 4, "tok_s": 50}\nwarning: slow\n{"concurrency": 8, "tok_s": 80}\n'
    )
    assert levels(tmp_path) == [50, 80]


def test_gpu_samples_without_a_header_say_what_is_missing(tmp_path: Path) -> None:
    rows = "2026/06/09 08:34:54.413, 0, 234.25, 0, 34\n2026/06/09 08:34:55.413, 0, 240.10, 3, 34\n"
    (tmp_path / "gpu.csv").write_text(rows)
    with pytest.raises(UnreadableEvidence, match="without a header"):
        read([tmp_path])
    (tmp_path / "gpu.csv").write_text(
        "timestamp, index, power.draw [W], utilization.gpu [%], temperature.gpu\n" + rows
    )
    assert read([tmp_path]).gpu_samples[0].power_w == 234.25
