"""The matrix file: which engines to start, how to load them, and what is true of each.

A TOML file::

    engine = "sglang"                     # or "vllm"
    version = "0.5.16"                    # of the engine; written into truth.toml, not checked
    gpu = "NVIDIA H200"                   # likewise
    flags = ["--load-format", "dummy"]    # of every engine; {traces} stands for a folder of its own
    [environment]                         # of every engine
    SGLANG_X = "1"
    [load]                                # of every case: options of `stepline record`, by their long names
    output_tokens = 192
    [model.llama8b]                       # its config.json; vocab_size gives the tokenizer
    architectures = ["LlamaForCausalLM"]
    [[case]]
    name = "graph-ceiling"                # the recording's folder
    model = "llama8b"
    flags = ["--cuda-graph-max-bs", "8"]
    wave = 1                              # engines of one wave start together, then are recorded one by one
    fault = "decode graphs end at batch 8"
    expected = "H303"                     # what costs most: a rule code, or "" where nothing may be confirmed
    also_true = []                        # codes that hold too and cost less
    forbidden = ["H302", "S201"]          # codes that would be wrong
    twin = "healthy"                      # the case without the fault, under the same load
    load = {concurrency = [1, 8, 48]}
    [[case]]
    name = "shared-prefix"
    on = "healthy"                        # recorded on the engine of that case of the wave, not on one of its own
    load = {shared_prefix_tokens = 496}
    traffic = {every_s = 1.0, input_tokens = 8000, output_tokens = 4}  # another client's requests beside the load
    neighbour = "print('on'); ..."        # Python in a process of its own; recorded from its first printed line on
"""

import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

from stepline.errors import UnreadableEvidence


class Load(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `stepline record` is told; its defaults, spelled out as the truth beside a recording states them."""

    budget: str = "3m"
    concurrency: tuple[int, ...] = ()
    """Empty leaves the levels to the planner."""
    input_tokens: int = 512
    output_tokens: int = 192
    shared_prefix_tokens: int = 0
    temperature: float = 0.0
    sampling: dict[str, int | float | bool] = {}


class Traffic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another client's requests, one after `every_s`, whether or not the ones before were answered."""

    every_s: float
    input_tokens: int
    output_tokens: int
    sampling: dict[str, int | float | bool] = {}


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One engine start with its load and what is true of it."""

    name: str
    model: str = ""
    fault: str
    expected: str
    load: Load
    also_true: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    twin: str | None = None
    on: str | None = None
    wave: int | None = None
    flags: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    traffic: Traffic | None = None
    neighbour: str | None = None
    cores: int | None = None
    """CPU cores that all of the engine's processes share; None leaves all to them."""


class Matrix(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All cases of a file; its common `flags`, `environment` and `load` are merged into each case."""

    engine: Literal["sglang", "vllm"]
    version: str
    gpu: str
    model: dict[str, dict[str, Any]]
    case: tuple[Case, ...]


def read_matrix(path: Path) -> Matrix:
    """Read a matrix file.

    Raises:
        UnreadableEvidence: the file is not TOML, a key is unknown, missing or of the wrong kind, or a case's
            name, model, twin or engine is not usable.
    """
    try:
        table = tomllib.loads(path.read_text())
        shared = {key: table.pop(key, type_()) for key, type_ in _SHARED.items()}
        for case in table.get("case", []):
            case["load"] = shared["load"] | case.get("load", {})
            if "on" not in case:
                case["flags"] = [*shared["flags"], *case.get("flags", [])]
                case["environment"] = shared["environment"] | case.get("environment", {})
        matrix = msgspec.convert(table, Matrix)
    except (OSError, ValueError) as e:  # msgspec's and tomllib's errors are ValueErrors
        raise UnreadableEvidence(f"{path}: {e}") from e
    names = [case.name for case in matrix.case]
    for case in matrix.case:
        if names.count(case.name) > 1 or not case.name.replace("_", "").replace("-", "").isalnum():
            raise UnreadableEvidence(f"{path}: case name {case.name!r} is used twice or is no plain word")
        host = next((other for other in matrix.case if other.name == case.on), None)
        if case.on is None and case.model not in matrix.model:
            raise UnreadableEvidence(f"{path}: case {case.name} names no [model.{case.model}]")
        if case.on is not None and (host is None or host.on is not None or case.flags or case.model):
            raise UnreadableEvidence(
                f"{path}: case {case.name} runs on the engine of {case.on}, so that has to be a case with an "
                "engine, and model and flags are its own"
            )
    return matrix


_SHARED = {"flags": list, "environment": dict, "load": dict}
