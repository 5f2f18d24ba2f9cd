"""Experiments made up for settings drawn at random from the catalogues: both directions and orders, four layouts.

The generator reads the catalogue's data files as plain JSON and takes column words from what tools print; it shares no
code with the readers.
"""

import json
import random
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import stepline
from stepline.findings.registry import RULES
from stepline.sources.read import read

DRAWN = 40
"""Settings a run of the test; a sound share of each mechanism is in the catalogue."""
ENGINES = ("sglang", "vllm", "tensorrt_llm", "lmdeploy", "tgi", "environment")
LAYOUTS = ("rows", "columns", "markdown", "named arms")
CODES = {rule.code for rule in RULES if rule.proven}
"""Causes with a rule that may find; a setting that relieves another is named by its mechanism alone."""
REQUESTS_OWN = (
    "context_length",
    "max_input_len",
    "max_input_length",
    "max_input_tokens",
    "num_tokens_per_iter",
)
"""Names that head a column of the load as well."""
ANY_SERVER = ("number format", "parallel layout")


class Drawn(NamedTuple):
    """A setting, its value with the cause and without it, and the cause."""

    name: str
    sick: str
    sound: str
    code: str


def _lines(name: str) -> list[dict[str, Any]]:
    text = resources.files("stepline.facts.settings").joinpath(name).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _judged() -> list[Drawn]:
    """Those whose judgement has one way and one cause, and whose name one engine alone uses or all judge alike."""
    told: dict[str, set[str]] = {}
    for engine in ENGINES:
        for line in _lines(f"{engine}.written.jsonl"):
            if "name" in line and "relieves" in line:
                told.setdefault(line["name"], set()).add(json.dumps(line["relieves"]))
    names = {line["name"]: line for engine in ENGINES for line in _lines(f"{engine}.names.jsonl")[1:]}
    found = []
    for engine in ENGINES:
        for line in _lines(f"{engine}.written.jsonl"):
            relieves = line.get("relieves", {})
            if (
                line.get("acts_on") in (*ANY_SERVER, None)
                or len(relieves) != 1
                or len(told[line["name"]]) > 1
            ):
                continue
            (way, codes) = next(iter(relieves.items()))
            plain = "_" in line["name"] and "." not in line["name"]
            if way == "set" or len(codes) != 1 or codes[0].startswith("L") or not plain:
                continue
            if codes[0] not in CODES or line["name"] in REQUESTS_OWN:
                continue
            kind = names.get(line["name"], {}).get("type", "str")
            if way in ("on", "off") and kind != "bool":
                continue
            low, high = ("False", "True") if way in ("on", "off") else ("16", "64")
            sick, sound = (low, high) if way in ("on", "raise") else (high, low)
            found.append(Drawn(line["name"], sick, sound, codes[0]))
    return found


def _write(folder: Path, layout: str, drawn: Drawn, rates: tuple[float, float], turned: bool) -> None:
    arms = [(drawn.sick, rates[0]), (drawn.sound, rates[1])]
    if turned:
        arms.reverse()
    if layout == "rows":
        text = f"{drawn.name},concurrency,output_throughput\n"
        text += "".join(f"{value},32,{rate}\n" for value, rate in arms)
        (folder / "ab.csv").write_text(text)
    elif layout == "markdown":
        text = f"| {drawn.name} | concurrency | tok/s |\n|---|---|---|\n"
        text += "".join(f"| {value} | 32 | {rate} |\n" for value, rate in arms)
        (folder / "ab.md").write_text(text)
    elif layout == "named arms":
        text = "config,concurrency,output_throughput\n"
        text += "".join(f"{drawn.name}={value},32,{rate}\n" for value, rate in arms)
        (folder / "ab.csv").write_text(text)
    else:
        heads = ",".join(f"output_throughput ({drawn.name}={value})" for value, _ in arms)
        (folder / "ab.csv").write_text(f"concurrency,{heads}\n32,{arms[0][1]},{arms[1][1]}\n")


def _said(folder: Path) -> list[tuple[str, str]]:
    return [(finding.code, finding.status) for finding in stepline.diagnose(read([folder])).findings]


CASES = random.Random(19).sample(_judged(), DRAWN)  # noqa: S311 - a fixed draw, no secret


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("drawn", CASES, ids=lambda drawn: drawn.name)
def test_the_cure_confirms_and_its_loss_does_not(tmp_path: Path, drawn: Drawn, layout: str) -> None:
    for number, turned in enumerate((False, True)):
        for way, rates in {"gain": (400.0, 900.0), "loss": (900.0, 400.0)}.items():
            folder = tmp_path / f"{way}{number}"
            folder.mkdir()
            _write(folder, layout, drawn, rates, turned)
            confirmed = {code for code, status in _said(folder) if status == "confirmed"}
            assert confirmed == ({drawn.code} if way == "gain" else set()), (way, turned)
