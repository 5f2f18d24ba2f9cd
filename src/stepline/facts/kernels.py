"""Kernel, step and host names to what they mean; the facts are in kernels.toml beside this file."""

import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

import msgspec

from stepline.facts import kernel_dictionary
from stepline.facts.kernel_grammar import LONGEST_NAME, compiled, spoken

UNATTRIBUTED = "unattributed"


_GENERIC = {"gemm", "elementwise"}
"""Parts that say what is computed but not for whom."""
_OWNERS = {"attention", "indexer", "linear-attention", "moe", "sampling", "speculation", "communication"}
"""Parts for which products and element-wise work are done; a product in a folder of quantisation is a product."""


class Naming(msgspec.Struct, frozen=True):
    """A component and whether the name alone settles it."""

    component: str
    generic: bool


class StepName(msgspec.Struct, frozen=True):
    """What an annotation says about a step."""

    kind: Literal["decode", "prefill", "mixed", "draft", "verify", "step"]
    batch: int | None
    tokens: int | None


class Chain(msgspec.Struct, frozen=True):
    """Generic kernels from one named `first` to the next `last` work for `component`."""

    component: str
    first: re.Pattern[str]
    last: re.Pattern[str]


@lru_cache(maxsize=1)
def _facts() -> dict[str, Any]:
    return tomllib.loads((files("stepline.facts") / "kernels.toml").read_text())


@lru_cache(maxsize=64)
def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


@lru_cache(maxsize=1)
def _components() -> tuple[tuple[str, re.Pattern[str], re.Pattern[str] | None], ...]:
    return tuple(
        (entry["name"], _any(*entry["patterns"]), _any(*entry["generic"]) if entry.get("generic") else None)
        for entry in _facts()["component"]
    )


@lru_cache(maxsize=20_000)
def component(name: str) -> Naming:
    """The component a kernel's name gives, `unattributed` (and generic) where neither package nor pattern knows it.

    A kernel that a package ships is placed by exception, by a file of one purpose, by its words, by its folder.
    """
    if part := compiled(name):
        return Naming(part, generic=part in _GENERIC)
    own = spoken(name)
    found = kernel_dictionary.shipped(own)
    if found and (
        part := kernel_dictionary.named_part(own.base) or kernel_dictionary.file_part(found, firm=True)
    ):
        return Naming(part, generic=False)
    words = _words(name)
    folder = kernel_dictionary.file_part(found, firm=False) if found else None
    if folder and (
        words.component == UNATTRIBUTED or (words.component in _GENERIC and _knows(folder, words))
    ):
        return Naming(folder, generic=folder in _GENERIC)
    return words


def _knows(folder: str, words: Naming) -> bool:
    """Whether the folder says more than a generic word: a reduction beside attention is attention's."""
    return folder in _OWNERS or (words.component == "elementwise" and folder != "gemm")


def _words(name: str) -> Naming:
    for known, pattern, generic in _components():
        if pattern.search(name, 0, LONGEST_NAME):
            return Naming(known, bool(generic and generic.search(name, 0, LONGEST_NAME)))
    return Naming(UNATTRIBUTED, generic=True)


@lru_cache(maxsize=20_000)
def path(name: str) -> Literal["tensor", "cuda-core"] | None:
    """Whether it runs on tensor cores, by the body that a package ships, else its name; None where neither says."""
    if (body := kernel_dictionary.tensor(kernel_dictionary.shipped(spoken(name)))) is not None:
        return "tensor" if body else "cuda-core"
    facts = _facts()["tensor_path"]
    core = _any(*facts["cuda_core"]).search(name, 0, LONGEST_NAME)
    if _any(*facts["tensor"]).search(name, 0, LONGEST_NAME) and not (
        core and core[0].lower() in {"splitkreduce", "gemv", "combine"}
    ):
        return "tensor"
    return "cuda-core" if core else None


@lru_cache(maxsize=20_000)
def dtype(name: str) -> str | None:
    """The narrowest operand type the name mentions."""
    kinds = ((kind, spelled) for kind, spelled in _facts()["dtypes"].items() if kind != "source")
    return next((kind for kind, spelled in kinds if _any(*spelled).search(name, 0, LONGEST_NAME)), None)


def step(name: str) -> StepName | None:
    """A step, where an annotation's name is one."""
    for entry in _facts()["step"]:
        if match := re.match(entry["pattern"], name):
            said = match.groupdict()
            number = {key: int(text) for key, text in said.items() if text and text.isdigit()}
            if "decode" in said:
                prefill, decode = number.get("prefill", 0), number.get("decode", 0)
                kind = "mixed" if prefill and decode else "prefill" if prefill else "decode"
                return StepName(kind, prefill + decode, number.get("tokens") or None)  # type: ignore[arg-type]
            word = (said.get("kind") or "").upper()
            return StepName(
                _facts()["step_kinds"].get(word, "step"), number.get("batch"), number.get("tokens")
            )
    return None


def phase(names: set[str]) -> Literal["decode", "prefill", "step"]:
    """Decode or prefill by the kernels that ran, `step` where they do not tell."""
    facts = _facts()["phase"]
    attention = {name for name in names if component(name).component == "attention"}
    found = [
        kind for kind in ("prefill", "decode") if any(_any(*facts[kind]).search(name) for name in attention)
    ]
    return found[0] if len(found) == 1 else "step"  # type: ignore[return-value]


@lru_cache(maxsize=200_000)
def owner(frame: str) -> str | None:
    """The component a Python frame or operator works for."""
    for entry in _facts()["owner"]:
        if re.search(entry["pattern"], frame) and not (
            "exclude" in entry and re.search(entry["exclude"], frame)
        ):
            return str(entry["component"])
    return None


@lru_cache(maxsize=1)
def chains() -> tuple[Chain, ...]:
    """All chains, in the order of the facts."""
    return tuple(
        Chain(e["component"], re.compile(e["first"]), re.compile(e["last"])) for e in _facts()["chain"]
    )


Activity = Literal["waits", "launches", "graph_launches", "results", "scheduler"]


@lru_cache(maxsize=200_000)
def host(name: str, activity: Activity) -> bool:
    """Whether a call, annotation or frame is of this activity."""
    return bool(_any(*_facts()["host"][activity]).search(name))


@lru_cache(maxsize=20_000)
def framework(name: str) -> bool:
    """Whether the kernel is the framework's own for one operator: a copy, an addition, a softmax."""
    return bool(_any(*_facts()["framework"]["patterns"]).search(name))
