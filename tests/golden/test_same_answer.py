"""The Python API and the command line give the same diagnosis as JSON, traces included, whatever the evidence."""

import json
import tomllib
from pathlib import Path

import msgspec
import pytest

import stepline
from stepline.cli.main import main
from stepline.errors import SteplineError
from stepline.evidence import bundle
from stepline.lab.sim.captures.capture import write_capture
from stepline.lab.sim.captures.cases import cases
from stepline.lab.sim.faults import FAULTS
from stepline.report.jsonout import to_json
from tests.captures import DATA, NEAR
from tests.unit.model.roofline.calibrations import calibration

SEED = 20260101
FOLDERS = [
    *NEAR,
    *sorted(path for engine in ("sglang", "vllm") for path in (DATA / "h200-lab" / engine).iterdir()),
    DATA / "traces",
]
STRONGEST = {fault.name: fault.strengths[-1] for fault in FAULTS}
ENGINES = ("sglang", "vllm")


def by_command(paths: list[Path], out: Path, *options: str) -> dict:
    """The answer of the command line."""
    file = out / "answer.json"
    main(["diagnose", *map(str, paths), "--json", str(file), "--quiet", *options])
    return json.loads(file.read_text())


def by_api(evidence: object, **settings: object) -> dict:
    return json.loads(to_json(stepline.diagnose(evidence, **settings)))


def assert_same(paths: list[Path], out: Path, **settings: object) -> dict:
    options = [
        word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    told = by_command(paths, out, *options)
    assert by_api(stepline.read(paths), **settings) == told
    return told


def test_every_recording_is_asked():
    """A folder that is added to `tests/data` is compared without being named here."""
    asked = {folder.relative_to(DATA).parts[0] for folder in FOLDERS if folder.is_relative_to(DATA)}
    assert asked == {path.name for path in DATA.iterdir() if path.is_dir() and not path.name.startswith("__")}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_of_a_recording(folder, tmp_path):
    assert_same([folder], tmp_path, gpu="h200")


@pytest.mark.parametrize("fault", STRONGEST)
def test_of_a_simulated_fault(fault, tmp_path):
    """Engines take turns, and each capture has what its case names: some have a trace, all a log."""
    engine = ENGINES[list(STRONGEST).index(fault) % len(ENGINES)]
    drawn = cases(SEED, engines=ENGINES)
    able = [each for each in drawn if each.fault == fault and each.strength == STRONGEST[fault]]
    one = next((each for each in able if each.engine == engine), able[0])
    write_capture(one, tmp_path)
    label = tomllib.loads((tmp_path / one.name / "case.toml").read_text())
    files = [tmp_path / one.name / name for name in label["data"]["files"]]
    told = assert_same(files, tmp_path, gpu=one.gpu, tp=one.tp)
    assert told["runs"][0]["verdict"]


def test_of_every_shared_case(shared, tmp_path):
    for file in sorted((shared / "cases").glob("*/case.toml")):
        label = tomllib.loads(file.read_text())
        named = label.get("data", {}).get("files", [])
        paths = [file.parent / name for name in named if (file.parent / name).exists()] or [file.parent]
        try:
            told = by_command(paths, tmp_path)
        except FileNotFoundError:  # no answer was written
            with pytest.raises(SteplineError):
                stepline.diagnose(paths)
            continue
        (tmp_path / "answer.json").unlink()
        assert by_api(stepline.read(paths)) == told, file.parent.name


@pytest.mark.parametrize(
    ("name", "code", "status"), [("tp2_nop2p", "C501", "confirmed"), ("v4_1m", "K401", "confirmed")]
)
def test_what_only_a_trace_proves(name, code, status):
    first = stepline.diagnose(stepline.read(DATA / "h200-live" / name)).findings[0]
    assert (first.code, first.status) == (code, status)


def test_every_setting_means_the_same(tmp_path):
    file = tmp_path / "calibration.json"
    file.write_bytes(msgspec.json.encode(calibration("NVIDIA H200")))
    folder = DATA / "h200-torch" / "attention_unfused"
    plain = by_api(folder)
    for name, value in {
        "model": "llama-3.1-8b", "gpu": "h200", "tp": 2, "ep": 2, "dp": 2, "pp": 2, "context_length": 4096,
    }.items():  # fmt: skip
        assert_same([folder], tmp_path, **{name: value})
    told = assert_same([folder], tmp_path, model="llama-3.1-8b", gpu="h200", tp=2, calibration=file)
    assert told != plain


def test_a_context_said_after_reading_reads_the_trace_by_it(tmp_path):
    """Which kernels follow the configured context is decided while a trace is condensed."""
    trace = DATA / "traces" / "v4_torch_1m.json.gz"
    evidence = stepline.read(trace)
    assert evidence.runs[0].trace.context_tokens is None
    told = by_api(evidence, context_length=1048576, gpu="h200")
    assert told == by_command([trace], tmp_path, "--context-length", "1048576", "--gpu", "h200")
    assert told != by_api(evidence, gpu="h200")


@pytest.mark.parametrize("wrap", [str, Path, lambda path: [path], lambda path: iter([str(path)])])
def test_read_takes_one_path_or_several(wrap):
    evidence = stepline.read(wrap(DATA / "h200-live" / "cap8"))
    assert by_api(evidence) == by_api(DATA / "h200-live" / "cap8")


def test_a_saved_run_with_its_trace_is_diagnosed_as_it_was(tmp_path):
    folder = DATA / "h200-live" / "tp2_nop2p"
    evidence = stepline.read(folder)
    bundle.save(evidence.runs[0], tmp_path / "bundle")
    assert by_api(evidence.runs[0]) == by_api(evidence)
    assert by_api(tmp_path / "bundle")["runs"][0]["findings"] == by_api(evidence)["runs"][0]["findings"]
