"""The settings catalogue's generated half: names, spellings, types and defaults by version, from released packages.

Run: python scripts/settings.py extract ENGINE PACKAGE...      write src/stepline/facts/settings/ENGINE.names.jsonl
     python scripts/settings.py --check PACKAGE...             name arguments that nobody has judged; exit 1 if any
     python scripts/settings.py messages ENGINE PACKAGE...     write ENGINE.messages.jsonl: log messages by which the
                                                               engine says it changed a setting; print those that only
                                                               people can judge
     python scripts/settings.py show ENGINE [WORD]             names without a judgement, with their help text
A package is a wheel, an sdist or a folder of sources called NAME-VERSION (`pip download --no-deps`). It is read as
text and as a syntax tree; nothing in it is installed, imported or run.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from engine_sources.found import COMPUTED, Found
from engine_sources.messages import read_messages
from engine_sources.others import read_dynamo, read_llama_cpp, read_lmdeploy, read_tgi
from engine_sources.package import Package
from engine_sources.sglang import read as read_sglang
from engine_sources.vllm import read as read_vllm

FOLDER = Path(__file__).parents[1] / "src" / "stepline" / "facts" / "settings"
READERS = {
    "sglang": read_sglang,
    "vllm": read_vllm,
    "lmdeploy": read_lmdeploy,
    "dynamo": read_dynamo,
    "tgi": read_tgi,
    "llama_cpp": read_llama_cpp,
}
PACKAGES = {
    "ai_dynamo": "dynamo",
    "llama_cpp_python": "llama_cpp",
    "text_generation_inference": "tgi",
}


def _version(text: str) -> tuple[Any, ...]:
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"[.\-]", text))


def merged(engine: str, packages: list[Package]) -> list[dict[str, Any]]:
    """One line a setting: its newest spelling, its default at each release where that changed."""
    releases = sorted(((p.name_and_version[1], p) for p in packages), key=lambda item: _version(item[0]))
    versions = [version for version, _ in releases]
    by_name: dict[str, dict[str, Found]] = {}
    wanted = judged(engine)
    for version, package in releases:
        for found in READERS[engine](package):
            if found.env == found.name and found.name not in wanted:
                continue  # hundreds of variables that no one sets: only what is judged is shipped
            by_name.setdefault(found.name, {})[version] = found
    lines: list[dict[str, Any]] = [{"engine": engine, "versions": versions}]
    lines.extend(_line(name, by_name[name], versions) for name in sorted(by_name))
    return lines


def _line(name: str, found: dict[str, Found], versions: list[str]) -> dict[str, Any]:
    newest = found[max(found, key=_version)]
    line: dict[str, Any] = {"name": name}
    flags = list(
        dict.fromkeys(
            flag for version in sorted(found, key=_version, reverse=True) for flag in found[version].flags
        )
    )
    if flags and flags != ["--" + name.replace("_", "-")]:
        line["flags"] = flags
    elif not flags:
        line["flags"] = []
    if newest.env:
        line["env"] = newest.env
        if newest.env == name:
            del line["flags"]
    if newest.kind:
        line["type"] = newest.kind
    if newest.choices:
        line["choices"] = newest.choices[:60]
    defaults: list[list[Any]] = []
    for version in versions:
        if version not in found:
            continue
        value = found[version].default
        if value is COMPUTED:
            value = {"computed": True}
        if not defaults or json.dumps(defaults[-1][1]) != json.dumps(value):
            defaults.append([version, value])
    line["default"] = defaults
    present = [version for version in versions if version in found]
    if present[0] != versions[0]:
        line["since"] = present[0]
    if present[-1] != versions[-1]:
        line["until"] = present[-1]
    if any(each.resolved for each in found.values()):
        line["resolved"] = True
    line["file"] = newest.where
    return line


def extract(engine: str, paths: list[Path]) -> None:
    """Write the names of an engine from all these releases."""
    lines = merged(engine, [Package(path) for path in paths])
    target = FOLDER / f"{engine}.names.jsonl"
    target.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    print(f"{target.name}: {len(lines) - 1} names of {', '.join(lines[0]['versions'])}")


def messages(engine: str, paths: list[Path]) -> None:
    """Write the messages that name their setting by what stands beside them; print the others."""
    packages = sorted((Package(path) for path in paths), key=lambda p: _version(p.name_and_version[1]))
    known = [
        json.loads(line) for line in (FOLDER / f"{engine}.written.jsonl").read_text("utf-8").splitlines()
    ]
    names = {line["name"] for line in known if "name" in line}
    lines = read_messages(packages, names)
    linked = [line for line in lines if "setting" in line]
    head = {"engine": engine, "versions": [package.name_and_version[1] for package in packages]}
    target = FOLDER / f"{engine}.messages.jsonl"
    target.write_text(
        "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [head, *linked]), "utf-8"
    )
    print(f"{target.name}: {len(linked)} of {len(lines)} messages", file=sys.stderr)
    for line in lines:
        if "setting" not in line:
            print(json.dumps(line, ensure_ascii=False))


def judged(engine: str) -> set[str]:
    """Names that somebody has judged or set aside with a reason."""
    names: set[str] = set()
    written = FOLDER / f"{engine}.written.jsonl"
    for text in written.read_text("utf-8").splitlines() if written.exists() else ():
        line = json.loads(text)
        names.update([line["name"]] if "name" in line else line.get("names", []))
    return names


def check(paths: list[Path]) -> int:
    """Arguments of these packages that are in no judgement; the exit code."""
    code = 0
    for path in paths:
        package = Package(path)
        name, version = package.name_and_version
        engine = PACKAGES.get(name, name)
        if engine not in READERS:
            raise SystemExit(f"{path.name}: no engine is called {engine}; known: {', '.join(READERS)}")
        known = judged(engine)
        found = [each for each in READERS[engine](package) if each.env != each.name and "." not in each.name]
        if not found:
            raise SystemExit(f"{path.name}: no argument found in it; the engine declares them elsewhere now")
        unknown = sorted(each.name for each in found if each.name not in known)
        print(f"{engine} {version}: {len(found)} arguments, {len(unknown)} without a judgement")
        for each in unknown:
            print(f"  {each}")
        code = 1 if unknown else code
    return code


def show(engine: str, path: Path, word: str) -> None:
    """What a release says about the names that nobody has judged yet."""
    known = judged(engine)
    for found in READERS[engine](Package(path)):
        if found.name not in known and word in found.name:
            print(f"{found.name}\t{found.kind}\t{found.default}\t{found.choices[:8]}\t{found.help[:160]}")


def main() -> int:
    """Read the command line and do what it asks."""
    if sys.argv[1:2] == ["--check"]:
        return check([Path(path) for path in sys.argv[2:]])
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=["extract", "messages", "show"])
    parser.add_argument("engine", choices=sorted(READERS))
    parser.add_argument("rest", nargs="+")
    asked = parser.parse_args()
    if asked.task == "extract":
        extract(asked.engine, [Path(path) for path in asked.rest])
    elif asked.task == "messages":
        messages(asked.engine, [Path(path) for path in asked.rest])
    else:
        show(asked.engine, Path(asked.rest[0]), asked.rest[1] if len(asked.rest) > 1 else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
