"""The documentation as a site: complete, fetched from nowhere else, and refused where a link leads nowhere."""

import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

from stepline.cli.explain import page_of, sections
from stepline.findings.registry import RULES

ROOT = Path(__file__).parents[2]
SCREENS = re.compile(r"<!-- first screen of: [^\n]* -->")


def _build(config: Path, out: Path) -> subprocess.CompletedProcess[str]:
    asked = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(out)]
    return subprocess.run(asked, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    done = _build(ROOT / "mkdocs.yml", out)
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_rule_has_a_page_that_says_what_its_docstring_says(site, rule):
    text = " ".join(
        unescape(re.sub("<[^>]+>", "", (site / "rules" / f"{rule.code}.html").read_text())).split()
    )
    for heading, body in sections(page_of(rule)).items():
        assert heading in text
        assert body.replace("`", "")[:60] in text


def test_pages_show_what_commands_print_and_what_the_code_knows(site):
    start = (site / "start.html").read_text()
    assert "S201 batch-capped  confirmed" in start
    engines = (site / "engines.html").read_text()
    for known in (
        "SGLang 0.4.1 to 0.5.23",
        "vLLM, V0 and V1 from 0.8.5 to 0.33",
        "GuideLLM",
    ):
        assert known in engines
    assert "NVIDIA H200 SXM" in (site / "hardware.html").read_text()
    assert "<td>deepgemm</td>" in (site / "kernels.html").read_text()
    marks = [page.name for page in site.rglob("*.html") if "<!-- first screen" in page.read_text()]
    assert marks == []


def test_no_page_fetches_from_elsewhere(site):
    fetched = re.compile(
        r"<(?:script|img|iframe)[^>]*\bsrc=\"?https?:|<link[^>]*rel=\"?(?:stylesheet|preconnect)[^>]*https?:"
    )
    assert [page.name for page in site.rglob("*.html") if fetched.search(page.read_text())] == []


@pytest.mark.parametrize("wrong", ["[gone](gone.md)", "[gone](lab.md#gone)", "see docs/gone.md"])
def test_a_link_that_leads_nowhere_fails(tmp_path, wrong):
    for name in ("docs", "scripts/site"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("mkdocs.yml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    page = tmp_path / "docs" / "start.md"
    page.write_text(SCREENS.sub(wrong, page.read_text()))
    done = _build(tmp_path / "mkdocs.yml", tmp_path / "out")
    assert done.returncode != 0
    assert "gone" in done.stderr
