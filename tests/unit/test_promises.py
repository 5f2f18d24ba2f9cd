"""The promises that documents make, held by tests."""

import inspect
import json
import re
from pathlib import Path

import pytest

from stepline.cli.main import main
from stepline.findings.registry import RULES

ROOT = Path(__file__).parents[2]
HEADINGS = (
    "What it means",
    "Why it costs",
    "Evidence needed",
    "How it decides",
    "What would prove it wrong",
    "What to try",
    "References",
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_rule_is_documented_explained_and_tested(rule, capsys):
    page = inspect.getdoc(inspect.getmodule(rule.check))
    assert page.startswith(f"{rule.code} {rule.codename}.")
    assert [heading for heading in HEADINGS if f"\n{heading}:" not in page] == []
    assert main(["explain", rule.codename.upper()]) == 0
    assert capsys.readouterr().out.startswith(page.strip())
    assert main(["explain", rule.code, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["code"], told["name"], told["since"]) == (rule.code, rule.codename, rule.since)
    assert tuple(told["sections"]) == HEADINGS
    sections = page[page.index(f"\n{HEADINGS[0]}:") :]
    body = [line.strip() for line in sections.splitlines()[1:] if line.rstrip(":") not in HEADINGS]
    assert " ".join(told["sections"].values()) == " ".join(filter(None, body))
    table = (ROOT / "docs" / "identifiability.md").read_text()
    assert f"| {rule.code} {rule.codename} |" in table
    assert rule.proven == ("makes notes only" not in page)
    names = [path.read_text() for path in (ROOT / "tests" / "rules" / rule.code).glob("test_*.py")]
    assert names
    tests = "\n".join(names)
    assert re.search(r"isinstance\([^)]*\), Fired\)|answer, Fired\)", tests)
    assert "Clear)" in tests
    assert "CannotTell)" in tests


def test_engine_names_of_metrics_and_fields_stay_in_engines():
    names = re.compile(r"sglang:|vllm:|#running-req|num_running_reqs|server_args=")
    elsewhere = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "src" / "stepline").rglob("*.py")
        if not {"engines", "sim"} & set(path.parts) and names.search(path.read_text())
    ]
    assert elsewhere == []


def test_no_file_is_larger_than_one_purpose():
    sizes = {path: len(path.read_text().splitlines()) for path in (ROOT / "src" / "stepline").rglob("*.py")}
    assert [str(path) for path, lines in sizes.items() if lines > 500] == []


def test_only_the_command_line_mentions_argparse():
    """A task takes a request, so that every door can make one."""
    source = ROOT / "src" / "stepline"
    known = {
        path.relative_to(source).parts[0] for path in source.rglob("*.py") if "argparse" in path.read_text()
    }
    assert known == {"cli"}


def test_a_rule_is_of_a_release_that_the_changelog_knows():
    releases = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert {rule.since for rule in RULES} <= set(releases)


def test_source_names_no_document_that_is_not_here():
    source = ROOT / "src" / "stepline"
    named = {
        name
        for path in source.rglob("*.py")
        for name in re.findall(r"(?<![\w/])docs/[\w-]+\.md\b|\bDESIGN\b", path.read_text("utf-8"))
    }
    assert {name for name in named if not (ROOT / name).is_file()} == set()
