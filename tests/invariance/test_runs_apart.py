"""Recordings put together keep the answers they have alone, in any layout; what cannot be told apart says so."""

import gzip
import json
import random
import re
import shutil
from functools import cache
from pathlib import Path

import msgspec
import pytest

from stepline.evidence.run import Run
from stepline.findings.diagnose import diagnose
from stepline.model.picture.assess import assess
from stepline.model.picture.picture import Setup
from stepline.sources.read import read, read_one_run

DATA = Path(__file__).parents[1] / "data"
KINDS = ("server.log", "steps.csv", "sweep.json", "client.jsonl")
RECORDINGS = sorted({path.parent for path in DATA.rglob("*") if path.name.startswith(KINDS)})
NAMELESS = {one for one in RECORDINGS if (one / "steps.csv").exists()}
"""A bare table of steps names no server and no time: beside others in one folder only its name can tell whose it is."""
LOGGED = [one for one in RECORDINGS if any(path.name.startswith("server.log") for path in one.iterdir())]
PLACE = re.compile(
    r"[\w./-]*(?:server|client|metrics|gpm|config|sweep|steps|all)[\w.-]*\.(?:log|jsonl|json|txt|csv)(?:\.gz)?"
    r"(?::\d+|#[^\"\s;,)\]]*)?"
)
SEEDS = range(16)


def files(recording: Path) -> list[Path]:
    """All but traces, which are condensed elsewhere."""
    return [
        path
        for path in sorted(recording.iterdir())
        if path.is_file() and not re.search(r"trace|truth", path.name)
    ]


def log_of(recording: Path) -> str:
    path = next(path for path in recording.iterdir() if path.name.startswith("server.log"))
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8", "replace")


def answer(run: Run) -> str:
    """The run's own diagnosis as JSON, without the names and places of its files."""
    told = json.loads(msgspec.json.encode(diagnose(assess(run, Setup(gpu="h200")))))
    told["id"] = ""
    told["provenance"]["read"] = sorted(told["provenance"]["read"])
    told["provenance"]["passed_over"] = []
    return PLACE.sub("FILE", json.dumps(told, sort_keys=True))


@cache
def alone(recording: Path, only_log: bool) -> str:
    told = [path for path in files(recording) if not only_log or path.name.startswith("server.log")]
    return answer(read_one_run(told))


def put_beside(recordings: list[Path], names: list[str], root: Path, layout: str) -> None:
    for name, recording in zip(names, recordings, strict=True):
        for path in files(recording):
            to = root / name / path.name if layout == "folders" else root / f"{name}_{path.name}"
            to.parent.mkdir(exist_ok=True)
            shutil.copy(path, to)


def one_after_the_other(recordings: list[Path], root: Path) -> None:
    (root / "all.log").write_text("".join(log_of(one).rstrip("\n") + "\n" for one in recordings))


def interleaved(recordings: list[Path], names: list[str], root: Path) -> None:
    """By the time of day that lines print, each with its pod before it."""
    rows: list[tuple[str, int, str]] = []
    for at, (name, recording) in enumerate(zip(names, recordings, strict=True)):
        clock = ""
        for line in log_of(recording).splitlines():
            told = re.search(r"\d\d:\d\d:\d\d", line[:60])
            clock = max(clock, told[0]) if told else clock
            rows.append((clock, at, f"[pod/{name}-0/engine] {line}"))
    rows.sort(key=lambda row: row[:2])
    (root / "all.log").write_text("".join(f"{row[2]}\n" for row in rows))


@pytest.mark.parametrize("layout", ["folders", "prefixes", "one after the other", "interleaved"])
@pytest.mark.parametrize("seed", SEEDS)
def test_each_run_has_the_answer_it_has_alone(tmp_path: Path, layout: str, seed: int) -> None:
    rng = random.Random(f"{layout}{seed}")  # noqa: S311
    by_log = layout in ("one after the other", "interleaved")
    able = LOGGED if by_log else RECORDINGS if layout == "folders" else sorted({*RECORDINGS} - NAMELESS)
    recordings = rng.sample(able, rng.choice([2, 2, 3]))
    names = [f"r{number}" for number in range(len(recordings))]
    rng.shuffle(names)
    if layout == "one after the other":
        one_after_the_other(recordings, tmp_path)
    elif layout == "interleaved":
        interleaved(recordings, names, tmp_path)
    else:
        put_beside(recordings, names, tmp_path, layout)
    evidence = read([tmp_path])
    assert sorted(map(answer, evidence.runs)) == sorted(alone(one, by_log) for one in recordings)


@pytest.mark.parametrize("seed", range(6))
def test_a_bare_table_is_told_by_its_name_or_joins_none(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    recordings = [rng.choice(sorted(NAMELESS)), *rng.sample(sorted({*RECORDINGS} - NAMELESS), 2)]
    put_beside(recordings, ["r0", "r1", "r2"], tmp_path, "prefixes")
    evidence = read([tmp_path])
    told = sorted(map(answer, evidence.runs))
    if "r0_steps.csv" in [one.path for one in evidence.ungrouped]:
        assert told == sorted(alone(one, False) for one in recordings[1:])
    else:
        assert told == sorted(alone(one, False) for one in recordings)


@pytest.mark.parametrize("seed", range(4))
def test_logs_mixed_without_a_prefix_are_answered_by_neither_or_said(tmp_path: Path, seed: int) -> None:
    """Two servers of one engine, line by line in one file: where both starts are in it, the file joins no run."""
    rng = random.Random(seed)  # noqa: S311
    started = [one for one in LOGGED if "server_args=" in log_of(one)]
    pair = rng.sample(started, 2)
    rows = sorted(
        (at / len(lines), which, line)
        for which, lines in enumerate(log_of(one).splitlines() for one in pair)
        for at, line in enumerate(lines)
    )
    (tmp_path / "all.log").write_text("".join(f"{row[2]}\n" for row in rows))
    evidence = read([tmp_path])
    assert evidence.ungrouped
    assert not any(run.decodes for run in evidence.runs)
