"""Log messages by which an engine says that it changed a setting of its own accord.

A message counts when the statements beside it (same block) write a setting: `self.x = …`, `declare(…, x=…)`,
`{"x": …}`. What it fills in is linked to what is written: that is the engine's value; the setting itself before the
write is the user's. A message that says so without a write beside it is for people to judge (`messages` prints it).
"""

import ast
import re
from collections.abc import Iterator
from typing import Any

from engine_sources.package import Package

SAYS_SO = re.compile(
    r"\b(cap(?:ped|ping)|truncat\w+|reduc(?:ed|ing)|clamp\w*|clipp?\w+|disabl(?:ed|ing)|fall(?:ing|s)? ?back|fallback"
    r"|overrid\w+|overwrit\w+|replac\w+|reset(?:ting)?|adjust\w*|chang(?:ed|ing)|set(?:ting)? (?:\S+ )?to|is set"
    r"|defaulting|default|switch\w+|forc(?:ed|ing)|ignor\w+|instead|lower\w+|rais\w+|increas\w+|decreas\w+|unsupported"
    r"|not supported|not implemented|auto(?:matically)?|turn(?:ed|ing) o(?:n|ff)|incompatible|not compatible|rounded"
    r"|enabl(?:ed|ing)|has no effect|no effect|not available|requires)\b",
    re.IGNORECASE,
)
LEVELS = {
    "warning",
    "warn",
    "info",
    "warning_once",
    "info_once",
    "log_info_on_rank0",
    "log_warning_on_rank0",
    "print_warning_once",
}
PASSED_OVER = ("/test", "benchmark", "multimodal_gen", "/models/", "lora_tuning")


MIN_WORDS = 3
"""Of a template beside what it fills in: fewer say nothing that only this message says."""


def read_messages(packages: list[Package], full_names: set[str]) -> list[dict[str, Any]]:
    """Every message that says so, in order of file, with what it writes and the releases that print it."""
    settings = _by_last_part(full_names)
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for package in packages:
        version = package.name_and_version[1]
        for path, text in package.under(".py").items():
            if any(part in path for part in PASSED_OVER) or ("logg" not in text and "on_rank0" not in text):
                continue
            try:
                tree = ast.parse(text)
            except SyntaxError:
                continue
            for message in _of_tree(tree, set(settings)):
                if "setting" in message:
                    message["setting"] = settings[message["setting"]]
                where = path.partition("/")[2]
                key = (where.rsplit("/", 1)[-1], message["template"], message.get("setting", ""))
                line = found.setdefault(key, {"template": message["template"], "file": where, "versions": []})
                line |= message | {"file": where}
                if version not in line["versions"]:
                    line["versions"].append(version)
    return sorted(found.values(), key=lambda line: (line["file"], line["template"], line.get("setting", "")))


def _by_last_part(full_names: set[str]) -> dict[str, str]:
    """`cudagraph_mode` for `compilation_config.cudagraph_mode`, unless two keys or an argument are called so."""
    found: dict[str, str] = {name: name for name in full_names if "." not in name}
    nested = [name for name in full_names if "." in name]
    last = [name.rpartition(".")[2] for name in nested]
    return {word: name for word, name in zip(last, nested, strict=True) if last.count(word) == 1} | found


def _of_tree(tree: ast.AST, settings: set[str]) -> Iterator[dict[str, Any]]:
    for node in ast.walk(tree):
        for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            if not isinstance(block, list):
                continue
            writes = [
                (at, *write) for at, statement in enumerate(block) for write in _writes(statement, settings)
            ]
            for at, statement in enumerate(block):
                call = _logged(statement)
                if call is None:
                    continue
                template, fills = _message(call)
                words = re.findall(r"[A-Za-z]{2,}", template.replace("{}", " "))
                if len(words) >= MIN_WORDS and SAYS_SO.search(template):
                    yield from _linked(template, fills, at, writes, settings)


def _logged(statement: ast.stmt) -> ast.Call | None:
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not call.args:
        return None
    return call if ast.unparse(call.func).split(".")[-1] in LEVELS else None


def _writes(statement: ast.stmt, settings: set[str]) -> Iterator[tuple[str, ast.expr]]:
    """Settings that one statement of the block writes, not those of blocks inside it."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Attribute) and target.attr in settings:
                yield target.attr, statement.value
            if (
                isinstance(target, ast.Subscript)
                and isinstance(target.slice, ast.Constant)
                and target.slice.value in settings
            ):
                yield target.slice.value, statement.value
    call = statement.value if isinstance(statement, ast.Expr | ast.Assign | ast.Return) else None
    if isinstance(call, ast.Call) and re.search(
        r"declare|override|replace|update|setattr", ast.unparse(call.func)
    ):
        for word in call.keywords:
            if word.arg in settings:
                yield str(word.arg), word.value
    if isinstance(call, ast.Dict):
        for key, value in zip(call.keys, call.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in settings:
                yield key.value, value


def _message(call: ast.Call) -> tuple[str, list[str]]:
    called = ast.unparse(call.func).split(".")[-1]
    arguments = call.args[1:] if called.endswith("rank0") and len(call.args) > 1 else call.args
    template, fills = _template(arguments[0])
    if not fills and re.search(r"%[\d.]*[sdrf]", template):
        fills = [ast.unparse(argument) for argument in arguments[1:]]
        template = re.sub(r"%[-+\d.,]*[sdrfgi]", "{}", template)
    return re.sub(r"\s+", " ", template).strip(), fills


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
        return re.sub(r"\{[^{}]*\}", "{}", _template(node.func.value)[0]), [ast.unparse(a) for a in node.args]
    return "", []


def _linked(
    template: str, fills: list[str], at: int, writes: list[tuple[int, str, ast.expr]], settings: set[str]
) -> Iterator[dict[str, Any]]:
    """One entry a setting that is written; one without where none is.

    A setting's own name in the message is what was asked for before the write, and what runs after it.
    """
    if not writes:
        named = sorted(
            name for name in settings if re.search(rf"(?<![\w-]){name}(?!\w)", template.replace("-", "_"))
        )
        yield {"template": template, "fills": fills, **({"named": named} if named else {})}
        return
    for name, (written, value) in {name: (where, value) for where, name, value in writes}.items():
        entry: dict[str, Any] = {"template": template, "setting": name}
        text = ast.unparse(value)
        group = next((each for each, fill in enumerate(fills) if fill == text), None)
        own = [each for each, fill in enumerate(fills) if fill.split(".")[-1] == name and each != group]
        if own and written < at and group is None:
            group, own = own[0], []
        try:
            entry["value"] = ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError):
            if isinstance(value, ast.Attribute) and value.attr.isupper():
                entry["value"] = value.attr
            elif group is None and len(own) == 1 and _after_write(template, own[0]):
                group, own = own[0], []
        if group is not None:
            entry["engine_group"] = group
        if own:
            entry["user_group"] = own[0]
        yield entry


def _after_write(template: str, group: int) -> bool:
    """`… to {}`, `… set to {}`: what stands after `to` or `=` is the value that was written."""
    return bool(re.search(r"(\bto|=|:)\s*['\"`]?$", "{}".join(template.split("{}")[: group + 1])))
