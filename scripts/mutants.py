"""What `scripts/mutate.py` breaks: each threshold and each decision of the rules, the model and the plan.

A mutant is applied to modules that are already imported: a threshold gets another value, a function another code.
"""

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import msgspec

from stepline.findings.registry import RULES
from stepline.threshold import Threshold, table

SRC = Path(__file__).parents[1] / "src"
BROKEN = ("stepline/findings", "stepline/model", "stepline/plan")
INVERSE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
STATUS = {"confirmed": "suspected", "suspected": "confirmed"}


class Mutant(NamedTuple):
    """One thing that is broken. `what` names it, independent of line numbers."""

    path: str
    """Of the module, below src."""
    line: int
    what: str
    functions: frozenset[tuple[str, str]]
    """(path, qualified name) of the functions that it changes: tests that call none of them cannot notice."""
    threshold: tuple[str, float] | None = None
    """(name in the module's table, its other value)."""
    node: int | None = None
    """Place of a decision in the walk over the module's tree."""

    @property
    def key(self) -> str:
        """How `tests/mutants.toml` names it."""
        return f"{self.path.removeprefix('stepline/').removesuffix('.py')}: {self.what}"


def modules() -> list[str]:
    """Paths of all modules that hold decisions, below src."""
    return sorted(
        str(path.relative_to(SRC))
        for room in BROKEN
        for path in (SRC / room).rglob("*.py")
        if path.name != "__init__.py"
    )


def of_rule(code: str) -> set[str]:
    """The module of a rule and those of the signs that it imports."""
    rule = next(rule for rule in RULES if rule.code == code)
    home = sys.modules[rule.check.__module__]
    asked = {str(getattr(thing, "__module__", "")) for thing in vars(home).values()}
    signs = {name for name in asked if name.startswith("stepline.model.signs.")}
    return {f"{name.replace('.', '/')}.py" for name in {home.__name__, *signs}}


def near_tests(path: str) -> str:
    """Folder of the tests that are about a module, to be run first."""
    name = path.removesuffix(".py").replace("/", ".")
    codes = [rule.code for rule in RULES if rule.check.__module__ == name]
    return f"tests/rules/{codes[0]}/" if codes else f"tests/unit/{Path(path).parent.relative_to('stepline')}/"


def mutants(path: str) -> Iterator[Mutant]:
    """All mutants of one module: thresholds up and down by a third, then decisions the other way round."""
    yield from _thresholds(path)
    yield from _decisions(path)


def _thresholds(path: str) -> Iterator[Mutant]:
    tree = ast.parse((SRC / path).read_text())
    lines = {
        part.targets[0].id: part.lineno
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == "T"
        for part in node.body
        if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name)
    }
    owner = getattr(_module(path), "T", None)
    for name, one in table(owner) if isinstance(owner, type) else ():
        readers = frozenset(_readers(owner, name))
        for way, value in (("up", _moved(one.value, 4 / 3)), ("down", _moved(one.value, 2 / 3))):
            yield Mutant(path, lines[name], f"{name} {way} to {value:.6g}", readers, threshold=(name, value))


def _moved(value: float, factor: float) -> float:
    """A third up or down; a count stays a count and moves by one at least."""
    if not isinstance(value, int):
        return value * factor
    moved = round(value * factor)
    return moved if moved != value else value + (1 if factor > 1 else -1)


def _readers(owner: type, name: str) -> Iterator[tuple[str, str]]:
    """Functions that read a threshold of a table, under whatever name they have imported it."""
    for path in modules():
        module = _module(path)
        tables = {alias for alias, thing in vars(module).items() if thing is owner}
        for qualname, function in functions(module).items():
            if tables and any(
                name in code.co_names and tables & set(code.co_names) for code in _codes(function.__code__)
            ):
                yield path, qualname


def _decisions(path: str) -> Iterator[Mutant]:
    tree = ast.parse((SRC / path).read_text())
    held = {}
    for qualname, function in _definitions(tree, ""):
        for statement in function.body:
            held |= {id(node): qualname for node in ast.walk(statement)}
    seen: dict[str, int] = {}
    for index, node in enumerate(ast.walk(tree)):
        if (qualname := held.get(id(node))) is None or not _breaks(node):
            continue
        text = ast.unparse(node) if not isinstance(node, ast.Constant) else repr(node.value)
        what = f"{qualname}: {text}"
        seen[what] = seen.get(what, 0) + 1
        what += f" #{seen[what]}" if seen[what] > 1 else ""
        yield Mutant(path, node.lineno, what, frozenset({(path, qualname)}), node=index)


def _definitions(body: ast.AST, prefix: str) -> Iterator[tuple[str, Any]]:
    """Functions of a module and methods of its classes; what is defined inside a function is part of it."""
    for node in getattr(body, "body", ()):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{prefix}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from _definitions(node, f"{prefix}{node.name}.")


def _breaks(node: ast.AST) -> bool:
    """True for a decision: a comparison, an `and` or `or`, a status."""
    if isinstance(node, ast.Compare):
        return type(node.ops[0]) in INVERSE
    return isinstance(node, ast.BoolOp) or (isinstance(node, ast.Constant) and node.value in STATUS)


def _turn(node: Any) -> None:
    """Break a decision in place."""
    if isinstance(node, ast.Compare):
        node.ops[0] = INVERSE[type(node.ops[0])]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
    else:
        node.value = STATUS[node.value]


def apply(mutant: Mutant) -> None:
    """Break this process."""
    module = _module(mutant.path)
    if mutant.threshold is not None:
        name, value = mutant.threshold
        one = vars(module.T)[name]
        assert isinstance(one, Threshold)  # noqa: S101  # a table holds nothing else
        msgspec.structs.force_setattr(one, "value", value)
        return
    tree = ast.parse((SRC / mutant.path).read_text())
    _turn(list(ast.walk(tree))[mutant.node or 0])
    broken = {code.co_qualname: code for code in _codes(compile(tree, str(SRC / mutant.path), "exec"))}
    for qualname, function in functions(module).items():
        if (mutant.path, qualname) in mutant.functions:
            function.__code__ = broken[qualname]


def functions(module: ModuleType) -> dict[str, FunctionType]:
    """Functions and methods that a module defines, by qualified name."""
    found: dict[str, FunctionType] = {}
    owners = [module, *(thing for thing in vars(module).values() if isinstance(thing, type))]
    for owner in owners:
        for member in vars(owner).values():
            bare = getattr(member, "fget", None) or getattr(member, "__func__", None) or member
            bare = getattr(bare, "func", bare)
            bare = getattr(bare, "__wrapped__", bare)
            if isinstance(bare, FunctionType) and bare.__module__ == module.__name__:
                found[bare.__qualname__] = bare
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _module(path: str) -> ModuleType:
    return importlib.import_module(path.removesuffix(".py").replace("/", "."))
