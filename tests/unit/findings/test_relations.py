"""What rules say of each other in words is what the table says, and nobody waits for himself."""

import ast
import inspect
import re
from pathlib import Path

import pytest

from stepline.findings import roofline_excess
from stepline.findings.families import FAMILIES
from stepline.findings.registry import RULES
from stepline.findings.relations import ALL, RELATIONS, outranks_all, relation_lines, relations_of
from stepline.model.signs import stretched_prompts

CODES = {rule.code for rule in RULES}
HOUSE = Path(inspect.getfile(roofline_excess)).parents[1]
SHARED = {"roofline_excess": roofline_excess}
"""What several rules ask, and speaks of rules in their place."""


def codes_in(source: str, *, docstring: bool) -> set[str]:
    """Codes of rules in the strings of a module, its own page left out unless wanted."""
    tree = ast.parse(source)
    page = ast.get_docstring(tree, clean=False)
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    wanted = [text for text in texts if docstring or text != page]
    return {code for text in wanted for code in re.findall(r"\b[A-Z]\d{3}\b", text)} & CODES


def sources(rule) -> list[str]:
    own = inspect.getsource(inspect.getmodule(rule.check))
    return [own, *(inspect.getsource(module) for name, module in SHARED.items() if f"import {name}" in own)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_table_says_what_the_rule_says(rule):
    said = set().union(*(codes_in(source, docstring=False) for source in sources(rule))) - {rule.code}
    told = set().union(*(codes_in(source, docstring=True) for source in sources(rule)))
    listed = {one.other for one in RELATIONS if one.code == rule.code and one.other != ALL}
    assert said <= listed
    assert listed <= told


def test_every_row_is_of_known_rules_and_stands_once():
    for one in RELATIONS:
        assert one.code in CODES | set(FAMILIES)
        assert one.other in CODES | {ALL}
        assert one.reason
    assert len({(one.code, one.kind, one.other) for one in RELATIONS}) == len(RELATIONS)


def test_no_rule_yields_to_one_that_yields_to_it():
    goes_to: dict[str, set[str]] = {}
    for one in RELATIONS:
        if one.kind == "yields to":
            goes_to.setdefault(one.code, set()).add(one.other)

    def reached(code: str, way: tuple[str, ...]) -> None:
        assert code not in way, " -> ".join((*way, code))
        for other in goes_to.get(code, ()):
            reached(other, (*way, code))

    for code in goes_to:
        reached(code, ())


def test_faults_of_the_measurement_go_first_but_a_trace_already_set_aside():
    first = {rule.code for rule in RULES if outranks_all(rule.code)}
    assert first == {code for code in CODES if code[0] == "L"} - {"L105"}


def test_explain_prints_the_rows():
    assert "yields to S202: a full KV pool" in relation_lines("S201")
    assert "outranks all" in relation_lines("L101")
    assert "none" in relation_lines("C504")
    assert relations_of("C504") == ()


def test_model_and_plan_know_no_rule():
    named = re.compile(rf"\b({'|'.join(sorted(CODES))})\b")
    for room in ("model", "plan"):
        for file in (HOUSE / room).rglob("*.py"):
            found = [line for line in file.read_text().splitlines() if named.search(line)]
            assert not found, (file.name, found)
    assert inspect.getfile(stretched_prompts).startswith(str(HOUSE / "model"))


def test_no_branch_reads_a_sentence():
    """Reasons, headlines and texts are for people; a comparison with a piece of them is a hidden code."""
    for file in HOUSE.rglob("*.py"):
        if {"sources", "lab"} & set(file.parts):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Compare):
                read = [
                    side.attr for side in (node.left, *node.comparators) if isinstance(side, ast.Attribute)
                ]
                fixed = [side for side in (node.left, *node.comparators) if isinstance(side, ast.Constant)]
                words = [side.value for side in fixed if isinstance(side.value, str)]
                assert not (words and {"reason", "headline", "text", "disturbance"} & set(read)), ast.unparse(
                    node
                )
