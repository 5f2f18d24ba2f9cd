"""A rule touches six files and an engine three, those that CONTRIBUTING names, and then all of it works."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.house import toys

ROOT = Path(__file__).parents[2]
COPIED = ("src", "tests/rules", "tests/unit/sources/engines", "docs", "pyproject.toml", "CONTRIBUTING.md")
CHANGED = (".py", ".toml", ".md")


@pytest.fixture
def tree(tmp_path):
    """A copy of the tree in which tests can be run."""
    for name in COPIED:
        source, place = ROOT / name, tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, place)
    for source in (ROOT / "tests").glob("*.py"):
        shutil.copy(source, tmp_path / "tests")
    for name in ("tests/unit", "tests/unit/sources"):
        shutil.copy(ROOT / name / "__init__.py", tmp_path / name)
    for name in ("tests/unit/test_promises.py", "tests/unit/sources/test_engines.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def add(tree: Path, files: Mapping[str, str], lines: Mapping[str, tuple[tuple[str, str], ...]]) -> None:
    for name, content in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        assert not (tree / name).exists()
        (tree / name).write_text(content)
    for name, changes in lines.items():
        text = (tree / name).read_text()
        for old, new in changes:
            assert old in text, f"{name}: {old!r}"
            text = text.replace(old, new, 1)
        (tree / name).write_text(text)


def touched(tree: Path) -> set[str]:
    """Files of the copy that are new or differ."""
    names = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.suffix in CHANGED}
    return {
        name
        for name in names
        if not (ROOT / name).exists() or (ROOT / name).read_bytes() != (tree / name).read_bytes()
    }


def listed(heading: str) -> list[re.Pattern[str]]:
    """The files that a section of CONTRIBUTING lists, one in front of each step; words in capitals are names."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    section = page.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    names = re.findall(r"(?m)^\d+\. `([^`]+)`", section)
    return [re.compile(re.sub(r"[A-Z]{4}", r"[^/]+", re.escape(name)) + "$") for name in names]


def run(tree: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def keeps_contracts(tree: Path) -> None:
    code = "from importlinter.cli import lint_imports_command; lint_imports_command(['--no-cache'])"
    (tree / "contracts.py").write_text(code)
    assert " 0 broken" in run(tree, "contracts")


def only_listed(tree: Path, heading: str, most: int) -> None:
    patterns = listed(heading)
    assert len(patterns) <= most
    assert [name for name in touched(tree) if not any(pattern.match(name) for pattern in patterns)] == []
    assert [pattern.pattern for pattern in patterns if not any(map(pattern.match, touched(tree)))] == []


TOLD = """
import json, sys
from stepline.facts.levers import find_lever
assert find_lever("toy").causes == ("H309",)
finding = json.load(sys.stdin)["runs"][0]["findings"][0]
assert finding["recoverable_tok_s"] > 0, finding
"""


def test_a_rule_with_gain_lever_and_fault_touches_six_files(tree):
    add(tree, toys.RULE_FILES, toys.RULE_LINES)
    only_listed(tree, "Add a rule", 6)
    keeps_contracts(tree)
    assert "H309 toy-overlap-off." in run(tree, "stepline", "explain", "toy-overlap-off")
    run(tree, "stepline", "lab", "run", "simulated", "--only", "sglang-H309-3-0", "-o", "lab", "--jobs", "1")
    case = tree / "lab" / "sglang-H309-3-0"
    said = run(tree, "stepline", "diagnose", str(case), "--json", "-")
    assert re.search(r'"findings":\s*\[\s*\{\s*"code":\s*"H309"', said), said[:3000]
    scored = run(tree, "stepline", "score", "lab")
    assert "top-1 1/1" in scored
    assert re.search(r"(?m)^toy-overlap-off +1/1", scored)
    subprocess.run(
        [sys.executable, "-c", TOLD],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "src")},
        input=said[said.index("{") :],
        text=True,
        check=True,
    )
    tested = run(tree, "pytest", "tests/rules/H309", "tests/unit/test_promises.py", "-k", "toy or H309")
    assert "5 passed" in tested, tested


def test_an_engine_touches_three_files(tree):
    add(tree, toys.ENGINE_FILES, toys.ENGINE_LINES)
    only_listed(tree, "Add an engine", 4)
    keeps_contracts(tree)
    tested = run(
        tree, "pytest", "tests/unit/sources/engines/test_toy.py", "tests/unit/sources/test_engines.py"
    )
    assert " passed" in tested
    case = tree / "toy"
    case.mkdir()
    (case / "server.log").write_text("toy step: running 4 took 5.0 ms\n" * 40)
    (case / "metrics.txt").write_text("# TYPE toy_running gauge\ntoy_running 4\n")
    (case / "truth.toml").write_text('expected = ""\nforbidden = []\n')
    said = run(tree, "stepline", "diagnose", str(case), "--json", "-")
    assert re.search(r'"engine":\s*"toy"', said)
    assert "metrics.txt (metrics scrape, 1 records)" in said
    assert "top-1 1/1" in run(tree, "stepline", "score", "toy")
