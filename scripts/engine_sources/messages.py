"""Log messages by which an engine says that it changed a setting of its own accord."""

import ast
import re
from typing import Any

from engine_sources.package import Package

SAYS_SO = re.compile(
    r"\b(capped|capping|truncat\w+|reduc(?:ed|ing)|clamp\w*|clipp?\w+|disabl(?:ed|ing|e)|fall(?:ing|s)? ?back|fallback"
    r"|overrid\w+|overwrit\w+|replac\w+|reset(?:ting)?|adjust\w*|chang(?:ed|ing)|set(?:ting)? to|is set|defaulting|"
    r"switch\w+|forc(?:ed|ing)|ignor\w+|instead|lower\w*|rais\w+|increas\w+|decreas\w+|limit\w*|unsupported|not supported"
    r"|auto(?:matically)?|turn(?:ed|ing) o(?:n|ff)|not compatible|incompatible|rounded|will use|using)\b",
    re.I,
)
LEVELS = {"warning", "warn", "info", "error", "warning_once", "info_once", "log_info_on_rank0", "log_warning_on_rank0"}


def read_messages(packages: list[Package]) -> list[dict[str, Any]]:
    """Every message in order of file, with the releases that print it."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for package in packages:
        engine, version = package.name_and_version
        for path, text in package.under(".py").items():
            if "/test" in path or "benchmark" in path or "multimodal_gen" in path:
                continue
            for template, names in _of_file(text):
                where = path.partition("/")[2]
                line = found.setdefault((where.rsplit("/", 1)[-1], template), {"versions": [], "file": where, "template": template})
                line["versions"].append(version)
                line["arguments"] = names
    return sorted(found.values(), key=lambda line: (line["file"], line["template"]))


def _of_file(text: str) -> list[tuple[str, list[str]]]:
    if "logg" not in text and "log_info" not in text:
        return []
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    messages = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = ast.unparse(node.func).split(".")[-1]
        if called not in LEVELS:
            continue
        first = node.args[1] if called.endswith("rank0") and len(node.args) > 1 else node.args[0]
        template, names = _template(first)
        if "%" in template and len(node.args) > 1 and not names:
            names = [ast.unparse(argument) for argument in node.args[1:]]
        if template and SAYS_SO.search(template):
            messages.append((re.sub(r"\s+", " ", template).strip(), names))
    return messages


def _template(node: ast.expr) -> tuple[str, list[str]]:
    """The text with `{}` for every value that is filled in, and the expressions that fill it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value, []
    if isinstance(node, ast.JoinedStr):
        parts, names = [], []
        for value in node.values:
            if isinstance(value, ast.Constant):
                parts.append(str(value.value))
            elif isinstance(value, ast.FormattedValue):
                parts.append("{}")
                names.append(ast.unparse(value.value))
        return "".join(parts), names
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _template(node.left), _template(node.right)
        return left[0] + right[0], left[1] + right[1]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return _template(node.func.value)[0], [ast.unparse(argument) for argument in node.args]
    return "", []
