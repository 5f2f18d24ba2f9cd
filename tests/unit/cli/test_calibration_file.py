import json
import os
from pathlib import Path

import msgspec
import pytest

from stepline.cli.main import main
from stepline.errors import UnreadableEvidence, UsageError
from stepline.tasks import calibration_file
from tests.unit.cli.test_roofline_png import floors_of
from tests.unit.model.roofline.calibrations import calibration


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    file = tmp_path / "mine.json"
    file.write_bytes(msgspec.json.encode(calibration("NVIDIA A10")))
    return file


def test_a_named_calibration_gives_the_typical_line(saved: Path) -> None:
    words = ("llama-3.1-8b", "--gpu", "a10", "--batch", "1")
    assert floors_of(*words).points[0].typical is None
    typical = floors_of(*words, "--calibration", str(saved)).points[0].typical
    assert typical is not None
    assert "measured on NVIDIA A10" in typical.source


def test_the_kept_one_is_found_and_used_for_its_gpu_alone(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    kept = calibration_file.place()
    calibration_file.make_folder(kept)
    saved.rename(kept)
    assert floors_of("llama-3.1-8b", "--gpu", "a10").points[0].typical is not None
    assert floors_of("llama-3.1-8b", "--gpu", "l4").points[0].typical is None


def test_without_a_setting_it_is_kept_under_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", os.sep + "home")
    assert calibration_file.place() == Path("/home/.config/stepline/calibration.json")
    assert calibration_file.SHOWN == "~/.config/stepline/calibration.json"


def test_a_calibration_of_another_gpu_is_refused_by_name(saved: Path) -> None:
    with pytest.raises(UsageError, match=r"is of NVIDIA A10, not of NVIDIA H200 SXM"):
        floors_of("llama-3.1-8b", "--gpu", "h200", "--calibration", str(saved))


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"schema_version": 1}'])
def test_what_is_no_calibration_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(content)
    with pytest.raises(UnreadableEvidence, match="is no calibration"):
        calibration_file.load(str(file))


def test_a_missing_file_and_another_schema_are_refused(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(UnreadableEvidence, match="is no calibration"):
        calibration_file.load(str(tmp_path / "absent.json"))
    content = json.loads(saved.read_text())
    content["schema_version"] = 9
    saved.write_text(json.dumps(content))
    with pytest.raises(UnreadableEvidence, match="schema 9"):
        calibration_file.load(str(saved))


HEALTHY = Path(__file__).parents[2] / "data" / "h200-sglang" / "healthy"


def typical_ms(*words: str, capsys: pytest.CaptureFixture[str]) -> tuple[float, str]:
    assert main(["diagnose", str(HEALTHY), "--gpu", "h200", "--json", "-", *words]) == 0
    told = capsys.readouterr()
    return json.loads(told.out)["runs"][0]["step"]["floor"]["typical_ms"], told.err


def test_a_diagnosis_uses_the_calibration_of_the_servers_gpu(
    tmp_path: Path, saved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "h200.json"
    mine.write_bytes(msgspec.json.encode(calibration("NVIDIA H200")))
    shipped, said = typical_ms(capsys=capsys)
    assert said == ""
    named, said = typical_ms("--calibration", str(mine), capsys=capsys)
    assert named != shipped
    assert said == ""
    other, said = typical_ms("--calibration", str(saved), capsys=capsys)
    assert other == shipped
    assert "is of NVIDIA A10, the server runs on NVIDIA H200 SXM: not used" in said
