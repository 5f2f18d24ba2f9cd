"""The matrix file: which engines to start, how to load them, and what is true of each.

A TOML file::

    engine = "sglang"                     # only this one so far
    version = "0.5.16"                    # of the engine; written into truth.toml, not checked
    gpu = "NVIDIA H200"                   # likewise
    flags = ["--load-format", "dummy"]    # of every case
    [environment]                         # of every case
    SGLANG_X = "1"
    [level]                               # defaults of every level
    input_tokens = 512
    output_tokens = 192
    seconds = 8.0
    [model.llama8b]                       # its config.json; vocab_size gives the tokenizer
    architectures = ["LlamaForCausalLM"]
    [[case]]
    name = "graph_cap8"                   # the capture's folder
    model = "llama8b"
    flags = ["--cuda-graph-max-bs", "8"]
    wave = 1                              # engines of one wave start together, then are measured one by one
    fault = "decode graphs end at batch 8"
    expected = "H303"                     # what costs most: a rule code, or "" where nothing may be confirmed
    also_true = []                        # codes that hold too and cost less
    forbidden = ["H302", "S201"]          # codes that would be wrong
    twin = "healthy"                      # the case without the fault, under the same load
    profile = {concurrency = 16, steps = 8}
    [[case.level]]                        # in order; what is absent comes from [level]
    concurrency = 16

A level lasts `seconds`, or until `requests` requests are done. A timed level shortens each stream's first
answer by a different fraction, so that ends do not march in step; a counted one starts all streams alike.
The first `shared_prefix_tokens` of each prompt are the same in all prompts, the rest is random.
`beside = {every_s, input_tokens, output_tokens}` sends one more request every `every_s` seconds besides.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from stepline.errors import UnreadableEvidence


class Beside(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Requests that arrive at a fixed rate beside the closed loop."""

    every_s: float
    input_tokens: int
    output_tokens: int


class Level(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One closed-loop load: `concurrency` streams, each sending its next request when the last is done."""

    concurrency: int
    input_tokens: int
    output_tokens: int
    seconds: float | None = None
    requests: int | None = None
    shared_prefix_tokens: int = 0
    temperature: float = 0.0
    ramp: float = 0.25
    """Part of a timed level that is not measured: the first burst of prompts and the spreading of ends."""
    beside: Beside | None = None


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A torch trace of some decode steps, taken after the levels under a load of its own."""

    concurrency: int
    steps: int = 8


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One engine start with its loads and what is true of it."""

    name: str
    model: str
    fault: str
    expected: str
    level: tuple[Level, ...]
    also_true: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    twin: str | None = None
    wave: int | None = None
    flags: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    profile: Profile | None = None


class Matrix(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All cases of a file; its common `flags`, `environment` and `level` are merged into each case."""

    engine: str
    version: str
    gpu: str
    model: dict[str, dict[str, Any]]
    case: tuple[Case, ...]


def read_matrix(path: Path) -> Matrix:
    """Read a matrix file.

    Raises:
        UnreadableEvidence: the file is not TOML, a key is unknown, missing or of the wrong kind, a level has
            neither `seconds` nor `requests`, or a case's name or model is not usable.
    """
    try:
        table = tomllib.loads(path.read_text())
        flags, environment, level = (
            table.pop("flags", []),
            table.pop("environment", {}),
            table.pop("level", {}),
        )
        for case in table.get("case", []):
            case["flags"] = [*flags, *case.get("flags", [])]
            case["environment"] = environment | case.get("environment", {})
            case["level"] = [_merged(level, each) for each in case.get("level", [])]
        matrix = msgspec.convert(table, Matrix)
    except (OSError, ValueError) as e:  # msgspec's and tomllib's errors are ValueErrors
        raise UnreadableEvidence(f"{path}: {e}") from e
    names = [case.name for case in matrix.case]
    for case in matrix.case:
        if names.count(case.name) > 1 or not case.name.replace("_", "").isalnum():
            raise UnreadableEvidence(f"{path}: case name {case.name!r} is used twice or is no plain word")
        if case.model not in matrix.model:
            raise UnreadableEvidence(f"{path}: case {case.name} names no [model.{case.model}]")
        if any((each.seconds is None) == (each.requests is None) for each in case.level):
            raise UnreadableEvidence(f"{path}: case {case.name} has a level without seconds or requests")
    return matrix


def _merged(defaults: Mapping[str, Any], level: Mapping[str, Any]) -> dict[str, Any]:
    other = "seconds" if "requests" in level else "requests"  # a level's own limit replaces the default one
    return {k: v for k, v in defaults.items() if k != other} | dict(level)
