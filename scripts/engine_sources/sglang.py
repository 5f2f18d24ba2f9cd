"""SGLang: `srt/server_args.py`, from 0.5.23 on `srt/arg_groups/fields/*.py`; environment in `srt/environ.py`."""

import ast

from engine_sources.found import COMPUTED, Found
from engine_sources.package import Package
from engine_sources.python_classes import (
    Constants,
    arguments,
    assigned_by_engine,
    class_fields,
    constants,
    literal,
)


def read(package: Package) -> list[Found]:
    """Arguments first, then environment variables."""
    main = package.text("srt/server_args.py")
    if main is None:
        raise SystemExit(f"{package.path}: no srt/server_args.py in it")
    fields = {name: ast.parse(text) for name, text in package.under("srt/arg_groups/fields/").items()}
    choices = package.text("srt/arg_groups/choices.py")
    known: Constants = {}
    for tree in ([ast.parse(choices)] if choices else []) + [ast.parse(main)] + list(fields.values()):
        known |= constants(tree)
    graphs = package.text("srt/model_executor/cuda_graph_config.py")
    if graphs:
        for node in ast.walk(ast.parse(graphs)):
            if isinstance(node, ast.ClassDef) and node.name in ("Backend", "Phase"):
                for item in node.body:
                    if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
                        known[f"{node.name}.{item.targets[0].id}"] = literal(item.value, known)
    trees = {"srt/server_args.py": ast.parse(main), **{_short(name): tree for name, tree in fields.items()}}
    settings: dict[str, Found] = {}
    for where, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and (node.name == "ServerArgs" or "arg_groups/fields" in where):
                for found in class_fields(node, known, where):
                    if found.kind != "derived":
                        settings.setdefault(found.name, found)
    for name, found in settings.items():
        known[f"ServerArgs.{name}"] = found.default
    for call in arguments(trees["srt/server_args.py"], known, "srt/server_args.py"):
        _join(settings, call)
    hooks = {name: ast.parse(text) for name, text in package.under("srt/arg_groups/").items()}
    for name in assigned_by_engine({**hooks, "main": trees["srt/server_args.py"]}, set(settings)):
        settings[name].resolved = True
    return [*settings.values(), *_environment(package)]


def _join(settings: dict[str, Found], call: Found) -> None:
    spelled = [flag.lstrip("-").replace("-", "_") for flag in call.flags]
    known = next((name for name in (call.name, *spelled) if name in settings), None)
    if known is None:
        settings[call.name] = call
        return
    found = settings[known]
    found.flags += [flag for flag in call.flags if flag not in found.flags]
    found.choices = found.choices or call.choices
    found.help = found.help or call.help
    if call.kind == "bool" and "=" not in call.flags[0] and found.kind == "":
        found.kind = "bool"


def _short(path: str) -> str:
    return path[path.index("srt/") :]


_KINDS = {
    "EnvBool": "bool",
    "EnvInt": "int",
    "EnvFloat": "float",
    "EnvStr": "str",
    "EnvTuple": "list",
    "EnvJSON": "json",
}
_GETTERS = ("get_bool_env_var", "get_int_env_var", "getenv", "environ.get")


def _environment(package: Package) -> list[Found]:
    settings: dict[str, Found] = {}
    text = package.text("srt/environ.py")
    for node in ast.walk(ast.parse(text)) if text else ():
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        target, made = node.targets[0], ast.unparse(node.value.func)
        if isinstance(target, ast.Name) and made.startswith("Env") and target.id.isupper():
            first = node.value.args[0] if node.value.args else None
            settings[target.id] = Found(
                target.id,
                kind=_KINDS.get(made, "str"),
                default=literal(first, {}),
                where="srt/environ.py",
                env=target.id,
            )
    for name, content in package.under("sglang/srt/").items():
        if any(getter in content for getter in _GETTERS):
            for found in read_getters(ast.parse(content), _short(name), "SGL"):
                settings.setdefault(found.name, found)
    return list(settings.values())


def read_getters(tree: ast.AST, where: str, prefix: str) -> list[Found]:
    """Environment variables that a file asks for by literal name."""
    settings = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        getter, first = ast.unparse(node.func), node.args[0]
        if not getter.endswith(_GETTERS) or not isinstance(first, ast.Constant):
            continue
        name = first.value
        if isinstance(name, str) and name.startswith(prefix) and name.isupper():
            default = literal(node.args[1], {}) if len(node.args) > 1 else None
            kind = "bool" if "bool" in getter else "int" if "int" in getter else "str"
            if kind == "bool" and isinstance(default, str):
                default = default.lower() in ("1", "true")
            if kind == "bool" and default is None:
                default = False
            settings.append(
                Found(
                    name,
                    kind=kind,
                    default=COMPUTED if default is COMPUTED else default,
                    where=where,
                    env=name,
                )
            )
    return settings
