"""What several runs say together, on every page: the table, the experiment with its interval, the run spoken of."""

import io
import json
import shutil
from pathlib import Path

import jsonschema
import pytest

import stepline
from stepline.cli.main import main
from stepline.errors import UsageError
from stepline.findings.diagnosis import Diagnosis
from stepline.report.html import page
from stepline.report.jsonout import schema, to_json
from stepline.report.markdown import markdown
from stepline.report.terminal import draw

DATA = Path(__file__).parents[2] / "data" / "h200-sglang-2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("campaign")
    for name in ("healthy_8b", "graph_cap8", "moe_healthy"):
        shutil.copytree(DATA / name, root / name)
    return root


@pytest.fixture(scope="module")
def told(folder: Path) -> Diagnosis:
    return stepline.diagnose(folder, gpu="h200")


def test_one_setting_apart_is_an_experiment_and_another_model_is_not(told: Diagnosis) -> None:
    (one,) = told.comparisons
    assert one.setting == "cuda_graph_max_bs_decode"
    assert (one.value_before, one.value_after) in (("64", "8"), ("8", "64"))
    assert one.effect.verdict in ("better", "worse")
    assert one.effect.interval.low < one.effect.speedup < one.effect.interval.high
    assert [(cause.code, cause.says) for cause in one.answers] == [("H303", "confirmed")]
    assert any("moe" in run for pair in told.not_comparable for run in pair.runs)


def test_the_json_of_several_runs_follows_the_schema(told: Diagnosis) -> None:
    document = json.loads(to_json(told))
    jsonschema.Draft202012Validator(schema()).validate(document)
    assert document["chosen_run"] in [run["id"] for run in document["runs"]]
    assert len({run["id"] for run in document["runs"]}) == 3


def test_every_report_says_what_the_runs_say_together(told: Diagnosis) -> None:
    stream = io.StringIO()
    draw(told, stream, width=200)
    for text in (stream.getvalue(), markdown(told).replace("\\", ""), page(told)):
        assert "cuda_graph_max_bs_decode" in text
        assert told.chosen_because in text
        for run in told.runs:
            assert run.id in text


def test_run_picks_the_one_to_speak_of(
    folder: Path, capsys: pytest.CaptureFixture[str], told: Diagnosis
) -> None:
    other = next(run.id for run in told.runs if run.id != told.chosen_run)
    main(["diagnose", str(folder), "--gpu", "h200", "--run", other, "--json", "-"])
    document = json.loads(capsys.readouterr().out)
    assert (document["chosen_run"], document["chosen_because"]) == (other, "asked for")
    assert main(["diagnose", str(folder), "--run", "nobody"]) == 2
    assert "there are" in capsys.readouterr().err


def test_compare_takes_a_folder_of_two_arms(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ("healthy_8b", "graph_cap8"):
        shutil.copytree(folder / name, tmp_path / name)
    assert main(["compare", str(tmp_path), "--gpu", "h200", "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["verdict"] in ("better", "worse")
    assert main(["compare", str(folder), "--gpu", "h200"]) == 2
    assert "3 configurations" in capsys.readouterr().err


def test_one_picture_is_of_one_run(folder: Path) -> None:
    with pytest.raises(UsageError, match="of 3 runs"):
        stepline.tasks.picture.picture_of(folder)
