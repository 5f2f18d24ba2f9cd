"""Every number that decides stands in a table, with its unit, its reason and its source."""

import ast
import importlib
import json
import pkgutil
from pathlib import Path

import pytest

import stepline.findings.rules
import stepline.model
import stepline.plan
from stepline.cli.main import main
from stepline.findings.registry import RULES, find_rule
from stepline.findings.thresholds import thresholds_of
from stepline.threshold import Threshold, table

SRC = Path(__file__).parents[2] / "src" / "stepline"
RULE_FILES = sorted((SRC / "findings" / "rules").glob("[a-z]*.py"))
MODEL_FILES = sorted(
    path
    for room in ("plan", "model/measure", "model/picture", "model/signs", "model/change", "model/trace")
    for path in (SRC / room).rglob("[a-z]*.py")
)
ARITHMETIC = {0, 1, 2, 100, 1000}
"""Nothing, one, a half or a middle, percent, milliseconds."""
FACTS = {
    ("log_clock", "NO_YEAR"): "where readers put a log without a year",
    ("communication", "BYTES_PER_VALUE"): "activations are reduced in 16 bits",
    ("sm_clocks", "POWER_LIMIT"): "NVML's bit",
    ("log_clock", 29): "the 29th of February",
    ("saturation", "(LEAST, MOST, EDGE)"): "bounds of a search",
    ("occupancy", 32): "threads of a warp",
    ("occupancy", 8): "compute capability",
    ("groups", "TABLE_ROWS"): "kernels kept for display",
    ("groups", "GROUPS_MOST"): "groups kept for display",
    ("summary", "STEPS_KEPT"): "steps saved one by one",
}
"""Constants and compared numbers that are no thresholds."""


def _is_number(node):
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _numbers(node):
    return [one for one in ast.walk(node) if _is_number(one) and one.value not in ARITHMETIC]


def _constants(tree):
    """Names bound to a number or to arithmetic on numbers, at the top of a module."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and all(
            isinstance(
                part, (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.operator, ast.unaryop, ast.Load)
            )
            and (not isinstance(part, ast.Constant) or _is_number(part))
            for part in ast.walk(node.value)
        ):
            yield ast.unparse(node.targets[0])


def _deciding(tree):
    """Lines of a rule with a number outside the table, the seconds of a proof and the length of a printed name."""
    apart = {id(one) for node in ast.walk(tree) if isinstance(node, ast.Slice) for one in _numbers(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Proof":
            apart |= {id(one) for one in _numbers(node.args[1])}
        if isinstance(node, ast.ClassDef) and node.name == "T":
            apart |= {id(one) for one in _numbers(node)}
    return [one.lineno for one in _numbers(tree) if id(one) not in apart]


@pytest.mark.parametrize("path", RULE_FILES, ids=lambda path: path.stem)
def test_a_rule_has_no_number_outside_its_table(path):
    tree = ast.parse(path.read_text())
    assert list(_constants(tree)) == []
    assert _deciding(tree) == []


@pytest.mark.parametrize("path", MODEL_FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_model_and_plan_compare_with_numbers_of_a_table_only(path):
    tree = ast.parse(path.read_text())
    assert [name for name in _constants(tree) if (path.stem, name) not in FACTS] == []
    compared = [node for node in ast.walk(tree) if isinstance(node, ast.Compare)]
    numbers = [one for node in compared for one in _numbers(node) if (path.stem, one.value) not in FACTS]
    assert [one.lineno for one in numbers] == []


def test_the_search_sees_a_number_wherever_it_stands():
    assert _deciding(ast.parse("def f(x):\n    return g(0.8 * x)")) == [2]
    assert _deciding(ast.parse("if x < 0.8:\n    pass")) == [1]
    assert list(_constants(ast.parse("A = 15 * 3600.0\nB, C = 0.3, 0.9\nD = -1\nE = f(3)"))) == [
        "A",
        "(B, C)",
        "D",
    ]


def _tables():
    for package in (stepline.findings.rules, stepline.model, stepline.plan):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            owner = getattr(importlib.import_module(module.name), "T", None)
            if isinstance(owner, type):
                yield module.name, dict(table(owner))


@pytest.mark.parametrize(("module", "rows"), list(_tables()))
def test_a_table_gives_unit_reason_and_source(module, rows):
    assert rows
    for name, one in rows.items():
        assert one.unit, name
        assert one.why.endswith("."), name
        assert one.source, name
        assert not one.source.endswith("."), name  # a part of a sentence: "Source: ..."


def test_a_threshold_reads_as_its_number_and_keeps_its_record():
    class Table:
        full = Threshold(0.9, "share", why="Beyond it nothing fits.")

    assert Table.full == 0.9
    assert dict(table(Table))["full"].source == "judgement, not calibrated"


def test_explain_prints_the_thresholds_of_a_rule_and_of_the_signs_it_asks(capsys):
    assert main(["explain", "H302"]) == 0
    told = capsys.readouterr().out
    assert "eager = 0.95 share of decode passes (model/signs/host)" in told
    assert "fast = 0.8 share of the GPU's work in a step (findings/rules/cuda_graph_off)" in told
    assert main(["explain", "H302", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["thresholds"]}
    assert rows["slow"]["value"] == 1.25
    assert rows["slow"]["source"] == "judgement, not calibrated"
    assert "H200" in rows["gpu_idle"]["source"]


def test_a_threshold_behind_a_property_is_found():
    names = {one.name for one in thresholds_of(find_rule("K402"))}
    assert {"slower", "span", "worth"} <= names  # read by SlowCache.matters, by the law of contexts, by both


def test_every_threshold_of_a_rule_decides_there():
    for rule in RULES:
        module = importlib.import_module(rule.check.__module__)
        place = module.__name__.removeprefix("stepline.").replace(".", "/")
        own = {one.name for one in thresholds_of(rule) if one.where == place}
        owner = getattr(module, "T", None)
        assert own == ({name for name, _ in table(owner)} if owner else set()), rule.code
