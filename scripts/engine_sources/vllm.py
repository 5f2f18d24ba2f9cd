"""vLLM: `engine/arg_utils.py` over `config/*.py`, front-end arguments, keys of JSON-valued arguments, `envs.py`."""

import ast

from engine_sources.found import COMPUTED, Found
from engine_sources.package import Package
from engine_sources.python_classes import (
    Constants,
    arguments,
    assigned_by_engine,
    class_fields,
    constants,
    kind_of,
    literal,
)

FRONT_END = (
    "entrypoints/common/cli_args.py",
    "entrypoints/launchers/cli_args.py",
    "entrypoints/openai/cli_args.py",
)


def read(package: Package) -> list[Found]:
    """Engine arguments, front-end arguments, nested config keys, environment variables."""
    text = package.text("vllm/engine/arg_utils.py")
    if text is None:
        raise SystemExit(f"{package.path}: no vllm/engine/arg_utils.py in it")
    configs = {name: ast.parse(content) for name, content in package.under("vllm/config/").items()}
    known: Constants = {}
    for tree in (
        *configs.values(),
        *(
            ast.parse(t)
            for n, t in package.under("vllm/").items()
            if n.endswith("attention/backends/registry.py")
        ),
    ):
        known |= constants(tree)
    classes: dict[str, list[Found]] = {}
    for _ in range(2):  # a default may be a field of a class in a later file
        for name, tree in configs.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    inside = _class_constants(node, known)
                    classes[node.name] = class_fields(node, {**known, **inside}, _short(name))
                    for found in classes[node.name]:
                        known[f"{node.name}.{found.name}"] = found.default
    engine = ast.parse(text)
    settings: dict[str, Found] = {}
    for node in engine.body:
        if isinstance(node, ast.ClassDef) and node.name in ("EngineArgs", "AsyncEngineArgs"):
            for found in class_fields(node, known | constants(engine), "engine/arg_utils.py"):
                settings[found.name] = found
    links = _links(engine)
    for call in arguments(engine, known, "engine/arg_utils.py"):
        _join(settings, call)
    for ending in FRONT_END:
        front = package.text("vllm/" + ending)
        if front is not None:
            tree = ast.parse(front)
            for node in tree.body:
                if isinstance(node, ast.ClassDef) and node.name.endswith("FrontendArgs"):
                    for found in class_fields(node, known, ending):
                        found.flags = ["--" + found.name.replace("_", "-")]
                        settings.setdefault(found.name, found)
            for call in arguments(tree, known, ending):
                _join(settings, call)
    serve = package.text("vllm/entrypoints/cli/serve.py")
    if serve is not None:
        for call in arguments(ast.parse(serve), known, "entrypoints/cli/serve.py"):
            _join(settings, call)
    _choices_from_configs(settings, classes)
    nested = _nested(settings, classes, links)
    for name in assigned_by_engine({**configs, "engine": engine}, set(settings)):
        settings[name].resolved = True
    return [*settings.values(), *nested, *_environment(package)]


def _class_constants(node: ast.ClassDef, known: Constants) -> Constants:
    inside: Constants = {}
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            value = literal(item.value, {**known, **inside})
            if value is not COMPUTED:
                inside[item.target.id] = value
    return inside


def _short(path: str) -> str:
    return path.partition("vllm/")[2]


def _links(tree: ast.Module) -> dict[str, str]:
    """Argument to the config class that its default comes from."""
    links: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            words = [
                n.id for n in ast.walk(node.annotation) if isinstance(n, ast.Name) and n.id.endswith("Config")
            ]
            if words:
                links[node.target.id] = words[0]
    links.setdefault("speculative_config", "SpeculativeConfig")
    return links


def _join(settings: dict[str, Found], call: Found) -> None:
    known = next((n for n in [call.name, *_names(call.flags)] if n in settings), None)
    if known is None:
        settings[call.name] = call
        return
    found = settings[known]
    found.flags += [flag for flag in call.flags if flag not in found.flags]
    found.choices = found.choices or call.choices


def _names(flags: list[str]) -> list[str]:
    return [flag.lstrip("-").replace("-", "_") for flag in flags]


def _choices_from_configs(settings: dict[str, Found], classes: dict[str, list[Found]]) -> None:
    fields = {found.name: found for members in classes.values() for found in members}
    for found in settings.values():
        member = fields.get(found.name)
        if member is not None:
            found.choices = found.choices or member.choices
            found.kind = found.kind or member.kind


def _nested(
    settings: dict[str, Found], classes: dict[str, list[Found]], links: dict[str, str]
) -> list[Found]:
    """`compilation_config.cudagraph_mode`: keys of arguments that take JSON, one and two levels deep."""
    keys: list[Found] = []
    for name, owner in links.items():
        if name not in settings or owner not in classes:
            continue
        for member in classes[owner]:
            path = f"{name}.{member.name}"
            keys.append(_key(path, member))
            if member.name == "pass_config":
                keys += [_key(f"{path}.{inner.name}", inner) for inner in classes.get("PassConfig", [])]
    return keys


def _key(path: str, member: Found) -> Found:
    return Found(path, kind=member.kind, choices=member.choices, default=member.default, where=member.where)


def _environment(package: Package) -> list[Found]:
    text = package.text("vllm/envs.py")
    if text is None:
        return []
    tree = ast.parse(text)
    typed: dict[str, Found] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for item in node.body:
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                    name = item.target.id
                    typed[name] = Found(name, kind=kind_of(item.annotation), where="envs.py", env=name)
                    typed[name].default = literal(item.value, {})
    declared: set[str] = set()
    for node in tree.body:
        value = getattr(node, "value", None)
        if isinstance(value, ast.Dict) and "environment_variables" in ast.unparse(node)[:40]:
            declared = {k.value for k in value.keys if isinstance(k, ast.Constant)}
    return [typed.get(name, Found(name, where="envs.py", env=name)) for name in sorted(declared)]
