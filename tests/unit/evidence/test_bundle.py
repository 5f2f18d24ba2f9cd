"""A saved run loads back equal; what is damaged is named and the rest is kept."""

import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepline.errors import UnreadableEvidence
from stepline.evidence import bundle
from stepline.evidence.gpu import GpuSample
from stepline.evidence.load import Failures, LeverTrial, LoadLevel, StepRow
from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin, Sourced
from stepline.evidence.run import EvidenceFile, ReadingDoubt, Run
from stepline.evidence.scheduler import DecodeReport, GraphUse, Notice, PrefillReport, SchedulerEvent
from stepline.evidence.server import ServerFacts
from stepline.sources.read import read_one_run as read


def a_long_run(count: int = bundle.SHORT_ROWS + 1) -> Run:
    return Run(
        decodes=tuple(
            DecodeReport(
                seq=n,
                origin=Origin("server.log", n),
                time_s=n / 4,
                dp=n % 3 or None,
                running=n % 64,
                tok_s=n * 1.5,
                graph=[True, False, None][n % 3],
                instrument="step" if n % 2 else "window",
            )
            for n in range(count)
        ),
        prefills=tuple(
            PrefillReport(seq=n, origin=Origin("server.log", n), new_sequences=1, new_tokens=n)
            for n in range(count)
        ),
        gpu_samples=tuple(GpuSample(origin=Origin("gpm.csv", n), power_w=n / 7) for n in range(count)),
        events=(SchedulerEvent(seq=1, origin=Origin("server.log", 1), kind="ready", text="ready"),),
    )


finite = st.floats(allow_nan=False, allow_infinity=False)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


counts = st.integers(0, 2**53)
# Left to itself hypothesis passes msgspec's marker for a default dict on as a value.
st.register_type_strategy(
    Failures, st.builds(Failures, refused=counts, status=st.dictionaries(st.integers(100, 599), counts))
)


def strategy_for(hint: Any) -> st.SearchStrategy[Any]:
    if hint is float:
        return finite
    if hint is int:
        return st.integers(-(2**53), 2**53)
    if hint is str:
        return text
    return st.from_type(hint)


for scalar in (float, int, str):
    st.register_type_strategy(scalar, strategy_for(scalar))
RECORDS = {
    "decodes": DecodeReport,
    "prefills": PrefillReport,
    "gpu_samples": GpuSample,
    "events": SchedulerEvent,
    "notices": Notice,
    "graph_uses": GraphUse,
    "metrics": EngineMetrics,
    "levels": LoadLevel,
    "step_rows": StepRow,
    "levers": LeverTrial,
    "files": EvidenceFile,
    "doubts": ReadingDoubt,
}


def built(record: type) -> st.SearchStrategy[Any]:
    import typing  # noqa: PLC0415

    hints = typing.get_type_hints(record)
    return st.builds(record, **{name: st.from_type(hint) for name, hint in hints.items()})


runs = st.builds(
    Run,
    server=st.builds(
        ServerFacts,
        tp=st.none() | st.builds(Sourced, st.integers(0, 99), built(Origin)),
        decode_graph_sizes=st.none()
        | st.builds(Sourced, st.lists(st.integers(0, 99)).map(tuple), built(Origin)),
        step_time_ms=st.none()
        | st.builds(Sourced, st.dictionaries(st.integers(0, 99), finite), built(Origin)),
    ),
    **{name: st.lists(built(record), max_size=3).map(tuple) for name, record in RECORDS.items()},
)


@settings(deadline=None)
@given(runs, st.booleans())
def test_what_is_saved_loads_back_equal(run: Run, every_table_long: bool) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(bundle, "SHORT_ROWS", 0 if every_table_long else 10**9)
        bundle.save(run, folder)
        assert bundle.load(folder) == run


def test_long_tables_load_back_equal_through_read(tmp_path: Path) -> None:
    run = a_long_run()
    bundle.save(run, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "decodes.parquet",
        "gpu_samples.parquet",
        "prefills.parquet",
        "run.json",
    ]
    assert bundle.load(tmp_path) == run
    seen = read([tmp_path])
    assert len(seen.decodes) == len(run.decodes)
    assert seen.doubts == ()


@pytest.mark.parametrize("damage", ["absent", "cut", "garbage"])
@pytest.mark.parametrize("name", ["run.json", "decodes.parquet"])
def test_of_a_damaged_bundle_the_whole_parts_load(tmp_path: Path, name: str, damage: str) -> None:
    bundle.save(a_long_run(), tmp_path)
    path = tmp_path / name
    content = path.read_bytes()
    path.write_bytes({"absent": b"", "cut": content[: len(content) // 2], "garbage": b"\0garbage"}[damage])
    if damage == "absent":
        path.unlink()
    run = read([tmp_path])
    assert len(run.prefills) == bundle.SHORT_ROWS + 1
    assert bool(run.decodes) == (name == "run.json")
    assert bool(run.events) == (name != "run.json")
    assert [doubt.topic for doubt in run.doubts] == ["damaged-file"]
    assert name in run.doubts[0].text


def test_a_bundle_of_a_newer_version_is_refused_with_the_way_out(tmp_path: Path) -> None:
    bundle.save(Run(), tmp_path)
    document = msgspec.json.decode((tmp_path / "run.json").read_bytes())
    document["schema_version"] = 99
    document["run"]["field_of_the_future"] = {}
    (tmp_path / "run.json").write_bytes(msgspec.json.encode(document))
    with pytest.raises(UnreadableEvidence, match=r"newer stepline \(schema 99.*update"):
        bundle.load(tmp_path)


def test_a_bundle_with_nothing_whole_is_an_error(tmp_path: Path) -> None:
    bundle.save(Run(), tmp_path)
    path = tmp_path / "run.json"
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(UnreadableEvidence, match="nothing of this bundle is whole"):
        bundle.load(tmp_path)


def test_the_files_a_bundle_was_made_from_are_not_read_twice(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    line = (
        "[2025-11-29 16:31:54] Decode batch, #running-req: 3, gen throughput (token/s): 8.00, #queue-req: 0\n"
    )
    log.write_text(line * 5)
    bundle.save(read([log]), tmp_path)
    assert len(read([tmp_path]).decodes) == 5
