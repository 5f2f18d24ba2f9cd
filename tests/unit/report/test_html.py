import json
import re
from importlib import resources

import jsonschema
import pytest

from stepline.cli.main import main
from stepline.report.jsonout import schema
from tests.captures import NEAR, RECORDED, SHARED
from tests.unit.report.parsed import Parsed

LARGEST = 1_500_000


def _reports(folder, out):
    page, data = out / "report.html", out / "report.json"
    code = main(
        ["diagnose", str(folder), "--gpu", "h200", "--quiet", "--html", str(page), "--json", str(data)]
    )
    assert code in (0, 3)
    return page.read_text("utf-8"), data.read_text("utf-8")


def _sound(page, data):
    assert len(page.encode()) < LARGEST
    assert len(data.encode()) < 200_000
    jsonschema.Draft202012Validator(schema()).validate(json.loads(data))
    parsed = Parsed(page)
    assert "script" not in parsed.tags
    assert len(parsed.ids) == len(set(parsed.ids))
    assert [link for link in parsed.links if link != "data:," and link[1:] not in parsed.ids] == []
    assert set(parsed.labels) <= set(parsed.ids)
    assert parsed.tags.count("caption") == parsed.tags.count("table")
    assert parsed.tags.count("h1") == 1
    assert not re.search(r"url\(|@import|https?:", page)


@pytest.mark.parametrize("folder", NEAR, ids=lambda folder: folder.name)
def test_pages_and_json_of_captures_are_sound(folder, tmp_path):
    _sound(*_reports(folder, tmp_path))


@pytest.mark.shared
@pytest.mark.parametrize("name", SHARED)
def test_pages_and_json_of_whole_captures_are_sound(shared, name, tmp_path):
    page, data = _reports(shared / "data" / "h200-sglang" / name, tmp_path)
    _sound(page, data)
    assert json.loads(data)["runs"][0]["kernels"]
    assert json.loads(data)["runs"][0]["timeline"]["series"]


def test_the_page_answers_with_what_the_diagnosis_says(tmp_path):
    page, data = _reports(RECORDED / "batch-cap", tmp_path)
    answer, text = json.loads(data)["runs"][0], Parsed(page).text
    finding = answer["findings"][0]
    for said in (
        answer["verdict"][1:],
        f"{finding['code']} {finding['name']}",
        finding["status"],
        "+5,4",
        finding["evidence"][0]["text"],
        finding["try"][0]["action"],
        finding["proof"]["command"],
        finding["ruled_out"][0]["by"],
        *(gap["needs"] for gap in answer["needs_evidence"]),
        *(clear["reason"] for clear in answer["ruled_out"]),
        *(knob["source"] for knob in answer["target"]["settings"]),
    ):
        assert said in text
    assert text.index(finding["try"][0]["action"]) < text.index("Evidence of")


def test_the_page_forbids_everything_from_outside(tmp_path):
    page, _ = _reports(RECORDED / "batch-cap", tmp_path)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")


def test_too_little_evidence_makes_a_page_all_the_same(tmp_path):
    (tmp_path / "gpu.csv").write_text("unix_s,graphics_util\n1,50\n2,50\n")
    page, data = _reports(tmp_path, tmp_path)
    _sound(page, data)
    assert "Too little was recorded" in page


def test_no_template_turns_escaping_off():
    folder = resources.files("stepline.report").joinpath("templates")
    texts = [path.read_text() for path in folder.iterdir()]
    assert len(texts) == 4
    assert not [text for text in texts if re.search(r"\|\s*safe|autoescape|Markup", text)]


@pytest.mark.parametrize("option", ["--html", "--md"])
def test_a_report_goes_to_a_file_only(option, capsys):
    assert main(["diagnose", str(RECORDED / "batch-cap"), option, "-"]) == 2
    assert "name a file" in capsys.readouterr().err
    assert main(["diagnose", str(RECORDED / "batch-cap"), option, "/nowhere/report"]) == 2
    assert "cannot be written" in capsys.readouterr().err
