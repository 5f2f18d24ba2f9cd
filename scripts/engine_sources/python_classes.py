"""Settings declared as annotated class fields and argparse calls, read from Python's syntax tree."""

import ast
from typing import Any

from engine_sources.found import COMPUTED, Found

Constants = dict[str, Any]


def constants(tree: ast.Module) -> Constants:
    """Module-level names bound to literals."""
    known: Constants = {}
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if isinstance(node, ast.AnnAssign):
            target = node.target
        if isinstance(target, ast.Name) and getattr(node, "value", None) is not None:
            value = literal(node.value, known)
            if value is not COMPUTED:
                known[target.id] = value
            elif names := _alias_choices(node.value):
                known[target.id] = names
    return known


def _alias_choices(node: ast.expr) -> list[Any]:
    return _literals(node)


def literal(node: ast.expr | None, known: Constants) -> Any:
    """The value of a literal, a known name, `field(default=…)`; COMPUTED for all else."""
    if node is None:
        return COMPUTED
    if isinstance(node, ast.Name):
        return known.get(node.id, COMPUTED)
    if isinstance(node, ast.Attribute):
        owner = ast.unparse(node.value)
        return known.get(f"{owner}.{node.attr}", known.get(f"{owner.split('.')[-1]}.{node.attr}", COMPUTED))
    if isinstance(node, ast.Call):
        return _call(node, known)
    if isinstance(node, ast.BinOp):
        return _arithmetic(node, known)
    if isinstance(node, ast.List | ast.Tuple):
        items = [literal(item, known) for item in node.elts]
        return COMPUTED if COMPUTED in items else items
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError):
        return COMPUTED
    return value if isinstance(value, bool | int | float | str | list | dict | None) else COMPUTED


def _arithmetic(node: ast.BinOp, known: Constants) -> Any:
    left, right = literal(node.left, known), literal(node.right, known)
    if not all(isinstance(side, int | float) for side in (left, right)):
        return COMPUTED
    if isinstance(node.op, ast.Mult):
        return left * right
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Pow) and right <= 64:
        return left**right
    return left << right if isinstance(node.op, ast.LShift) and right <= 64 else COMPUTED


def _call(node: ast.Call, known: Constants) -> Any:
    name = ast.unparse(node.func).split(".")[-1]
    if name == "get_field" and len(node.args) == 2:
        return known.get(f"{ast.unparse(node.args[0])}.{ast.literal_eval(node.args[1])}", COMPUTED)
    for keyword in node.keywords:
        if keyword.arg == "default" and name.lower() in ("field", "privateattr"):
            return literal(keyword.value, known)
        if keyword.arg == "default_factory" and name.lower() == "field":
            made = ast.unparse(keyword.value)
            return {"list": [], "dict": {}, "tuple": [], "set": []}.get(made.split("[")[0], COMPUTED)
    if name.lower() == "field" and node.args:
        return literal(node.args[0], known)
    return COMPUTED


def kind_of(annotation: ast.expr) -> str:
    """`int | None`, `A[Optional[int], …]`, `Literal[…]` as one plain word or union."""
    text = ast.unparse(annotation)
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) in ("A", "Annotated", "NS"):
        inner = annotation.slice
        return kind_of(inner.elts[0] if isinstance(inner, ast.Tuple) else inner)
    text = text.replace("Optional[", "").replace("typing.", "")
    for word in ("bool", "int", "float", "str"):
        if text.replace("]", "").replace(" | None", "") == word:
            return word
    if "Literal[" in text:
        return "choice"
    if text.lower().startswith(("list", "tuple", "set")):
        return "list"
    if "dict" in text.lower() or "Config" in text:
        return "json"
    if "int" in text.split(" | ") or "int" in text.replace("[", ",").replace("]", ",").split(","):
        return "int"
    return "str"


def _literals(annotation: ast.expr) -> list[Any]:
    found: list[Any] = []
    for node in ast.walk(annotation):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Literal"):
            items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            found += [item.value for item in items if isinstance(item, ast.Constant)]
    return found


def class_fields(node: ast.ClassDef, known: Constants, where: str) -> list[Found]:
    """Every annotated field that is no ClassVar and no derived value."""
    settings = []
    for item in node.body:
        if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
            continue
        text = ast.unparse(item.annotation)
        if text.startswith(("ClassVar", "InitVar", "dataclasses.InitVar")) or item.target.id.startswith("_"):
            continue
        if item.value is not None and _not_an_argument(item.value):
            continue
        found = Found(item.target.id, kind=kind_of(item.annotation), where=where)
        found.default = literal(item.value, known)
        found.choices = _literals(item.annotation)
        if not found.choices:
            named = [known.get(n.id) for n in ast.walk(item.annotation) if isinstance(n, ast.Name)]
            found.choices = next((v for v in named if isinstance(v, list) and v), [])
        _metadata(item.annotation, known, found)
        settings.append(found)
    return settings


def _not_an_argument(value: ast.expr) -> bool:
    keywords = value.keywords if isinstance(value, ast.Call) else []
    return any(
        word.arg == "init" and isinstance(word.value, ast.Constant) and word.value.value is False
        for word in keywords
    )


def _metadata(annotation: ast.expr, known: Constants, found: Found) -> None:
    """SGLang's `A[T, "help"]` and `A[T, Arg(help=…, choices=…, aliases=…)]`."""
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.slice, ast.Tuple):
        return
    flag = "--" + found.name.replace("_", "-")
    found.flags = [flag]
    for extra in annotation.slice.elts[1:]:
        if not isinstance(extra, ast.Call):
            found.help = _text(extra)
            continue
        for word in extra.keywords:
            value = literal(word.value, known)
            if word.arg == "choices" and isinstance(value, list):
                found.choices = value
            elif word.arg == "aliases" and isinstance(value, list):
                found.flags += value
            elif word.arg == "cli_name" and isinstance(value, str):
                found.flags[0] = value if value.startswith("--") else "--" + value
            elif word.arg == "no_cli" and value is True:
                found.flags = []
            elif word.arg == "resolvable" and value is True:
                found.resolved = True
            elif word.arg == "help":
                found.help = _text(word.value)
        if ast.unparse(extra.func).split(".")[-1] == "Derived":
            found.flags, found.kind = [], "derived"


def _text(node: ast.expr) -> str:
    return " ".join(
        str(n.value) for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    )


def arguments(tree: ast.AST, known: Constants, where: str) -> list[Found]:
    """Every `add_argument("--x", …)`: its own setting, or other spellings of the one it stores to."""
    calls = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("add_argument"):
            flags = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            if not flags or not flags[0].startswith("-"):
                continue
            words = {word.arg: word.value for word in node.keywords if word.arg}
            starred = next((ast.unparse(w.value) for w in node.keywords if w.arg is None), "")
            calls.append(_argument(flags, words, starred, known, where))
    return calls


def _argument(
    flags: list[str], words: dict[str, ast.expr], starred: str, known: Constants, where: str
) -> Found:
    dest = literal(words.get("dest"), known)
    long = next((flag for flag in flags if flag.startswith("--")), flags[0])
    name = dest if isinstance(dest, str) else long.lstrip("-").replace("-", "_")
    if '["' in starred or "['" in starred:  # vLLM: **cache_kwargs["cache_dtype"]
        name = name if isinstance(dest, str) else long.lstrip("-").replace("-", "_")
    action = ast.unparse(words["action"]) if "action" in words else ""
    constant = literal(words.get("const_value", words.get("const")), known)
    if literal(words.get("nargs"), known) == "?":
        constant = COMPUTED  # what the flag means where its value is left out: it still takes one
    spelled = [
        f"{flag}={constant}" if constant is not COMPUTED and constant is not None else flag for flag in flags
    ]
    found = Found(name, flags=spelled, where=where)
    if "store_true" in action or "StoreTrue" in action or "BooleanOptional" in action:
        found.kind = "bool"
        found.default = False
    kind = ast.unparse(words["type"]) if "type" in words else ""
    found.kind = found.kind or {"int": "int", "float": "float", "str": "str", "json_list_type": "json"}.get(
        kind, ""
    )
    value = literal(words.get("default"), known)
    if "default" in words:
        found.default = value
    choices = literal(words.get("choices"), known)
    found.choices = choices if isinstance(choices, list) else []
    found.help = _text(words["help"]) if "help" in words else ""
    return found


def assigned_by_engine(trees: dict[str, ast.Module], names: set[str]) -> set[str]:
    """Settings that the engine's own code writes after they were parsed: `self.x = …`, `args.x = …`."""
    written: set[str] = set()
    for tree in trees.values():
        for node in ast.walk(tree):
            targets = node.targets if isinstance(node, ast.Assign) else []
            for target in targets:
                if isinstance(target, ast.Attribute) and target.attr in names:
                    written.add(target.attr)
    return written
