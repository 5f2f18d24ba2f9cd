import sqlite3

import pytest

from stepline.errors import UnreadableEvidence
from stepline.model.trace import summarise
from stepline.sources.readers import nsys_sqlite, traces


def export(path, *statements):
    with sqlite3.connect(path) as database:
        for statement in statements:
            database.execute(statement)
    database.close()
    return path


KERNELS = "create table CUPTI_ACTIVITY_KIND_KERNEL (start int, end int, deviceId int, shortName int)"
NAMES = ("create table StringIds (id int, value text)", "insert into StringIds values (5, 'nvjet_tst')")


def test_missing_tables_and_columns_are_not_recorded_not_zero(tmp_path):
    path = export(
        tmp_path / "a.sqlite",
        KERNELS,
        *NAMES,
        "insert into CUPTI_ACTIVITY_KIND_KERNEL values (100, 350, 0, 5)",
    )
    (trace,) = traces.read(path)
    assert trace.strings[trace.gpu.name[0]] == "nvjet_tst"
    assert (trace.gpu.end_ns - trace.gpu.start_ns).tolist() == [250]
    assert trace.gpu.registers.tolist() == trace.gpu.correlation.tolist() == [-1]
    assert [doubt.topic for doubt in trace.doubts] == ["damaged"]
    rank = summarise([trace]).ranks[0]
    assert rank.top[0].occupancy is None
    assert rank.busy_ms == pytest.approx(250e-6)


def test_an_export_without_cuda_activity_says_how_to_get_it(tmp_path):
    with pytest.raises(UnreadableEvidence, match="nsys profile -t cuda"):
        nsys_sqlite.read(export(tmp_path / "a.sqlite", KERNELS))


def test_a_broken_database_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "a.sqlite"
    path.write_bytes(b"SQLite format 3\x00" + b"junk" * 300)
    with pytest.raises(UnreadableEvidence, match="not a readable Nsight Systems export"):
        traces.read(path)


@pytest.mark.shared
def test_sums_equal_those_of_sql(shared):
    for path in sorted((shared / "data").rglob("*.sqlite")):
        database = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
        tables = [f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET")]
        sums = "select count(*), sum(end - start) from {}"
        counted = [database.execute(sums.format(table)).fetchone() for table in tables]
        database.close()
        read = nsys_sqlite.read(path)
        assert sum(len(trace.gpu) for trace in read) == sum(count for count, _ in counted)
        total = sum(int((trace.gpu.end_ns - trace.gpu.start_ns).sum()) for trace in read)
        assert total == sum(length for _, length in counted)
