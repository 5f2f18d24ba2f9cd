"""A bundle whose names are attacks does nothing in any report, and makes none of them large."""

import json

import jsonschema
import pytest
from markdown_it import MarkdownIt

from stepline.cli.main import main
from stepline.report.jsonout import schema
from tests.unit.report import hostile
from tests.unit.report.parsed import Parsed


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder, out = tmp_path_factory.mktemp("evidence"), tmp_path_factory.mktemp("reports")
    hostile.write(folder)
    names = {kind: out / f"report.{kind}" for kind in ("html", "md", "json")}
    asked = [word for kind, path in names.items() for word in (f"--{kind}", str(path))]
    assert main(["diagnose", str(folder), "--gpu", "h200", "--quiet", "--debug", *asked]) == 0
    return {kind: path.read_text("utf-8") for kind, path in names.items()}


def test_the_attack_reaches_the_reports_as_text(reports):
    page = Parsed(reports["html"])
    assert page.text.count("<script>alert(1)</script>") >= 4  # title, target, kernels, lever
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert not [name for name in page.attributes if name.startswith("on")]


def test_no_report_grows_with_a_name(reports):
    assert len(reports["html"].encode()) < 1_500_000
    assert len(reports["json"].encode()) < 1_500_000
    assert len(reports["md"]) < 65_536


def test_nothing_moves_the_cursor_or_the_reading_direction(reports):
    decoded = json.dumps(json.loads(reports["json"]), ensure_ascii=False)
    for report in (reports["html"], reports["md"], reports["json"], decoded):
        assert not [sign for sign in ("\x1b", "\u202e", "\\u001b") if sign in report]


def test_markdown_holds_no_html_of_the_server_and_no_mention(reports):
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(reports["md"])
    inside = [child for token in tokens for child in token.children or []]
    assert {child.type for child in inside} <= {
        *("text", "softbreak", "code_inline", "strong_open", "strong_close", "text_special"),
    }
    blocks = [token.content.strip() for token in tokens if token.type == "html_block"]
    assert all(block.startswith(("<details><summary>", "</details>")) for block in blocks)
    assert "@octocat" not in "".join(child.content for child in inside if child.type == "text")
    assert "| attention_backend" not in reports["md"]


def test_the_json_still_follows_its_schema(reports):
    jsonschema.Draft202012Validator(schema()).validate(json.loads(reports["json"]))
