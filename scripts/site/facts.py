"""What pages show that only the code knows: what the readers say of themselves, GPUs and models, first screens."""

import importlib
import inspect
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from stepline import units
from stepline.facts.catalogue import model_ids
from stepline.facts.hardware import all_gpus
from stepline.facts.kernel_dictionary import packages
from stepline.sources import engines
from stepline.sources.importers import guidellm
from stepline.sources.importers.registry import ONE_RESULT

_SCREEN = re.compile(r"<!-- first screen of: stepline ([^\n]*) -->")
_LINES = 24


def filled(markdown: str) -> str:
    """A page with its marks replaced."""
    for mark, made in (
        ("engines", _engines),
        ("importers", _importers),
        ("gpus", _gpus),
        ("models", _models),
        ("kernel packages", _packages),
    ):
        if f"<!-- {mark} -->" in markdown:
            markdown = markdown.replace(f"<!-- {mark} -->", made())
    return _SCREEN.sub(lambda asked: _first_screen(asked[1]), markdown)


def _engines() -> str:
    """Each engine's own sentence, and whether a running server of it is told apart from any other."""
    rows = ["| engine | what is read | driven live by its own routes |", "|---|---|---|"]
    for info in pkgutil.iter_modules(engines.__path__, f"{engines.__name__}."):
        module = importlib.import_module(info.name)
        name, what = _sentence(module).split(": ", 1)
        rows.append(f"| {name} | {what} | {'yes' if module.ENGINE.find else 'no'} |")
    return "\n".join(rows)


def _importers() -> str:
    return "\n".join(f"- {_sentence(tool)}" for tool in (*ONE_RESULT, guidellm))


def _gpus() -> str:
    rows = ["| GPU | memory | bandwidth |", "|---|---|---|"]
    rows += [
        f"| {gpu.name} | {units.size(gpu.memory_bytes)} | {units.size(gpu.bandwidth_bytes_s)}/s |"
        for gpu in all_gpus()
    ]
    return "\n".join(rows)


def _models() -> str:
    return ", ".join(f"`{name}`" for name in model_ids())


def _packages() -> str:
    rows = ["| package | version | kernels | files |", "|---|---|---|---|"]
    counted = ((one, sum(map(len, one.files.values()))) for one in packages())
    rows += [
        f"| {one.package} | {one.version} | {count:,} | {len(one.files):,} |"
        for one, count in counted
        if count
    ]
    return "\n".join(rows)


def _sentence(module: ModuleType) -> str:
    """The first paragraph of a module's docstring."""
    return (inspect.getdoc(module) or "").split("\n\n")[0].replace("\n", " ")


def _first_screen(arguments: str) -> str:
    """What a command prints on 80 columns and 24 lines, run now."""
    done = subprocess.run(  # noqa: S603 - a command of our own pages
        [sys.executable, "-m", "stepline", *shlex.split(arguments)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return "\n".join(["```text", *done.stdout.splitlines()[:_LINES], "```"])
