"""LMDeploy, Dynamo, TGI and llama.cpp: what each declares on its command line."""

import ast
import re

from engine_sources.found import COMPUTED, Found
from engine_sources.package import Package
from engine_sources.python_classes import arguments, constants, literal


def read_lmdeploy(package: Package) -> list[Found]:
    """`lmdeploy serve api_server`: helpers that `cli/serve.py` asks for, its own calls, `pytorch/envs.py`."""
    serve, helpers = package.text("lmdeploy/cli/serve.py"), package.text("lmdeploy/cli/utils.py")
    if serve is None or helpers is None:
        raise SystemExit(f"{package.path}: no lmdeploy/cli/serve.py in it")
    used = set(re.findall(r"ArgumentHelper\.(\w+)\(", serve))
    settings: dict[str, Found] = {}
    for node in ast.walk(ast.parse(helpers)):
        if isinstance(node, ast.FunctionDef) and (node.name in used or node.name == "add_spec_group"):
            defaults = [literal(value, {}) for value in node.args.defaults]
            names = [argument.arg for argument in node.args.args][-len(defaults) :] if defaults else []
            for found in arguments(node, dict(zip(names, defaults, strict=False)), "cli/utils.py"):
                settings.setdefault(found.name, found)
    for found in arguments(ast.parse(serve), {}, "cli/serve.py"):
        settings.setdefault(found.name, found)
    environment = package.text("lmdeploy/pytorch/envs.py")
    for node in ast.walk(ast.parse(environment)) if environment else ():
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            getter, name = ast.unparse(node.func), node.args[0].value
            if getter.startswith(("env_to", "os.getenv")) and isinstance(name, str) and name.isupper():
                default = literal(node.args[1], {}) if len(node.args) > 1 else COMPUTED
                kind = getter.removeprefix("env_to_") if "env_to" in getter else "str"
                settings[name] = Found(name, kind=kind, default=default, where="pytorch/envs.py", env=name)
    return [found for found in settings.values() if found.flags or found.env]


_DYNAMO = (
    "dynamo/common/configuration/groups/",
    "dynamo/frontend/frontend_args.py",
    "dynamo/vllm/backend_args.py",
    "dynamo/sglang/backend_args.py",
    "dynamo/trtllm/backend_args.py",
    "dynamo/router/args.py",
)


def read_dynamo(package: Package) -> list[Found]:
    """`add_argument(group, flag_name="--x", env_var="DYN_X", default=…)` of the front end, router and workers."""
    settings: dict[str, Found] = {}
    for part in _DYNAMO:
        for path, text in package.under(part).items():
            tree, where = ast.parse(text), path.partition("dynamo/")[2]
            known = constants(tree)
            for node in ast.walk(tree):
                if not isinstance(node, ast.Call):
                    continue
                words = {word.arg: word.value for word in node.keywords if word.arg}
                flag = literal(words.get("flag_name"), known)
                if not isinstance(flag, str):
                    continue
                name = literal(words.get("dest"), known)
                name = name if isinstance(name, str) else flag.lstrip("-").replace("-", "_")
                found = Found(name, flags=[flag], where=where, default=literal(words.get("default"), known))
                obsolete = literal(words.get("obsolete_flag"), known)
                if isinstance(obsolete, str):
                    found.flags.append(obsolete)
                env = literal(words.get("env_var"), known)
                found.env = env if isinstance(env, str) else None
                made = ast.unparse(node.func)
                kind = ast.unparse(words["arg_type"]) if "arg_type" in words else ""
                found.kind = (
                    "bool"
                    if "negatable" in made or "bool" in kind
                    else kind
                    if kind in ("int", "float")
                    else "str"
                )
                choices = literal(words.get("choices"), known)
                found.choices = choices if isinstance(choices, list) else []
                settings.setdefault(name, found)
    return list(settings.values())


_RUST = re.compile(r"#\[clap\((?P<clap>[^\]]*)\)\]\s*(?P<name>\w+): (?P<type>[\w<>:]+),")


def read_tgi(package: Package) -> list[Found]:
    """The launcher's `struct Args`: every member is a flag and an environment variable of that name."""
    text = package.text("launcher/src/main.rs")
    if text is None:
        raise SystemExit(f"{package.path}: no launcher/src/main.rs in it")
    body = text[text.index("struct Args {") :]
    settings = []
    for match in _RUST.finditer(body):
        clap, name, kind = match["clap"], match["name"], match["type"]
        if "long" not in clap:
            continue
        named_env = re.search(r'env = "(\w+)"', clap)
        found = Found(name, flags=["--" + name.replace("_", "-")], where="launcher/src/main.rs")
        found.env = named_env[1] if named_env else name.upper() if re.search(r"\benv\b", clap) else None
        inner = kind.removeprefix("Option<").rstrip(">")
        found.kind = {"bool": "bool", "f32": "float", "f64": "float", "String": "str"}.get(inner, "int")
        if inner[0].isupper() and inner != "String":
            found.kind = "choice"
        given = re.search(r'default_value = "([^"]*)"', clap)
        if given:
            found.default = _plain(given[1], found.kind)
        else:
            found.default = False if found.kind == "bool" else None
        settings.append(found)
    return settings


def _plain(text: str, kind: str) -> object:
    if kind == "int" and text.lstrip("-").isdigit():
        return int(text)
    return float(text) if kind == "float" else text


_OPTION = re.compile(
    r"add_opt\(common_arg\(\s*\{(?P<flags>[^}]*)\}(?:,\s*\{(?P<negated>[^}]*)\})?(?P<rest>.*?)\n\s+\)(?P<tail>(?:\.set_\w+\([^;]*)?\));",
    re.DOTALL,
)
_PARAMETER = re.compile(r"^\s+(?:[\w:<>]+)\s+(\w+)\s*=\s*([^;,]+);", re.MULTILINE)


def read_llama_cpp(package: Package) -> list[Found]:
    """`common/arg.cpp`: options of the server; defaults are the parameters of `common/common.h`."""
    text, header = package.text("common/arg.cpp"), package.text("common/common.h")
    if text is None or header is None:
        raise SystemExit(f"{package.path}: no common/arg.cpp in it")
    defaults = {
        name: _number(value.strip())
        for name, value in _PARAMETER.findall(header[header.index("struct common_params {") :])
    }
    servers_own = re.search(r"== LLAMA_EXAMPLE_SERVER\) \{\s*params\.(\w+) = (-?\d+);", text)
    if servers_own:
        defaults[servers_own[1]] = int(servers_own[2])
    settings = []
    for match in _OPTION.finditer(text):
        tail = match["tail"]
        if "set_examples" in tail and not re.search(r"LLAMA_EXAMPLE_(SERVER|COMMON|SPECULATIVE)", tail):
            continue
        flags = re.findall(r'"(-[^"]+)"', match["flags"])
        negated = re.findall(r'"(-[^"]+)"', match["negated"] or "")
        if not flags:
            continue
        long = next((flag for flag in flags if flag.startswith("--")), flags[0])
        found = Found(
            long.lstrip("-").replace("-", "_"),
            flags=flags + [f"{flag}=False" for flag in negated],
            where="common/arg.cpp",
        )
        env = re.search(r'set_env\("(\w+)"\)', tail)
        found.env = env[1] if env else None
        body = match["rest"]
        takes = re.search(r"\[\]\(common_params & ?\w*, (int|bool|const std::string &)", body)
        found.kind = (
            {"int": "int", "bool": "bool", "const std::string &": "str"}.get(takes[1], "str")
            if takes
            else "bool"
        )
        stored = re.findall(r"params\.(\w+)\s*=\s*(!?)", body)
        if len(set(stored)) == 1 and stored[0][0] in defaults:
            value = defaults[stored[0][0]]
            found.default = not value if stored[0][1] and isinstance(value, bool) else value
        settings.append(found)
    unique: dict[str, Found] = {}
    for found in settings:
        unique.setdefault(found.name, found)
    return list(unique.values())


def _number(text: str) -> object:
    text = text.rstrip("f") if re.fullmatch(r"-?[\d.]+f", text) else text
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    except ValueError:
        return text.strip('"') if text.startswith('"') else COMPUTED
