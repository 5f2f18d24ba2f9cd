"""docs/architecture.md against the folders, and how many files a room holds."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "stepline"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
TO_COME = {"tasks", "threshold"}
"""Layers that the page has, whether the tree has them yet or not. A name is taken off when it is there."""
MOST = 22
"""Modules of a folder that a reader can look over: about twenty. Comparable tools have 8 to 27 in their widest."""
REASON = "So many files because "


def packages(depth: int) -> set[str]:
    found = (path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("__init__.py"))
    return {name for name in found if name != "." and name.count("/") < depth}


def rooms() -> list[str]:
    tree = PAGE.split("## The rooms", 1)[1].split("```text\n", 1)[1].split("```", 1)[0]
    return [line.split()[0] for line in tree.splitlines()]


def test_the_tree_has_every_layer_and_none_that_is_not_there():
    layers = {name for name in rooms() if "/" not in name and "." not in name}
    assert layers - TO_COME == packages(1) - TO_COME
    modules = {name for name in rooms() if name.endswith(".py")}
    here = {path.name for path in SOURCE.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert modules == here | {name for name in modules if name.removesuffix(".py") in TO_COME}


@pytest.mark.parametrize("layer", ["model", "sources", "lab", "findings"])
def test_the_tree_has_every_room_of_a_layer_that_has_rooms(layer):
    inside = {name for name in rooms() if name.startswith(f"{layer}/")}
    assert inside == {name for name in packages(2) if name.startswith(f"{layer}/")}


def test_every_file_that_the_page_names_is_there():
    named = re.findall(r"`([a-z_]+/[\w/.]+)`", PAGE)
    assert len(named) > 15
    missing = [name for name in named if "NAME" not in name and not (SOURCE / name).exists()]
    assert missing == []


def test_the_page_says_the_contracts_that_are_checked():
    layers = re.findall(r"(?m)^layers = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL)
    said = [re.findall(r"\w+", line) for line in re.findall(r"`([^`\n]+ > [^`]+)`", PAGE)]
    assert len(layers) == len(said) == 2
    for checked, line in zip(layers, said, strict=True):
        names = [name for name in re.findall(r"\w+", checked) if name != "__main__"]
        assert [name for name in line if name in names or name not in TO_COME] == names


def test_a_room_holds_what_a_reader_can_look_over_or_says_why_more():
    for package in {path.parent for path in SOURCE.rglob("__init__.py")}:
        modules = [path for path in package.glob("*.py") if path.name != "__init__.py"]
        why = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
        name = package.relative_to(SOURCE).as_posix()
        assert (REASON in why) == (len(modules) > MOST), f"{name}: {len(modules)} modules"
