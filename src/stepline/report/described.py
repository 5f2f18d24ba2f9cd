"""What each field of a result means, from the docstring under it: the JSON Schema describes every property."""

import ast
import inspect
from functools import cache
from itertools import pairwise

from stepline.findings import comparison, detail, diagnosis, history, outcome, together
from stepline.model.change import gain


@cache
def descriptions() -> dict[str, dict[str, str]]:
    """By record, then by the field's name in JSON; a field without a docstring is left out."""
    modules = (diagnosis, together, detail, outcome, comparison, history, gain)
    return {
        node.name: _fields(node)
        for module in modules
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.ClassDef)
    }


def _fields(record: ast.ClassDef) -> dict[str, str]:
    found: dict[str, str] = {}
    for field, under in pairwise(record.body):
        text = under.value if isinstance(under, ast.Expr) else None
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(text, ast.Constant)
            and isinstance(text.value, str)
        ):
            found[_name(field)] = inspect.cleandoc(text.value).replace("\n", " ")
    return found


def _name(field: ast.AnnAssign) -> str:
    """The field's name in JSON, which `msgspec.field(name=…)` may change."""
    for keyword in field.value.keywords if isinstance(field.value, ast.Call) else ():
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    return field.target.id if isinstance(field.target, ast.Name) else ""
