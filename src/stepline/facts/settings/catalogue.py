"""All settings of an engine, found by any of their spellings."""

import functools
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

import msgspec

from stepline.facts.settings.records import Judgement, Setting

ENGINES = ("sglang", "vllm", "tensorrt_llm", "llama_cpp", "lmdeploy", "tgi", "dynamo")
COMMON = "environment"
"""CUDA, NCCL, UCX, PyTorch, containers and processes: of no engine."""
_SEPARATORS = re.compile(r"[-_.\s]+")


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """One engine's settings with their judgements, those set aside with their reasons."""

    engine: str
    releases: tuple[str, ...]
    settings: Mapping[str, Setting]
    judgements: Mapping[str, Judgement]
    set_aside: Mapping[str, str]
    """Name to why it cannot move decode speed."""
    source: str
    """Where the judgements were read, for those that name no source of their own."""
    flags: Mapping[str, tuple[str, Any]]
    """Flag to (name, the value that it stores or None); underscores are dashes here."""
    variables: Mapping[str, str]
    """Environment variable to name."""

    def find(self, word: str) -> Setting | None:
        """The setting that a name, flag, variable or dotted key spells; None for none of this engine's."""
        if word in self.settings:
            return self.settings[word]
        if word in self.variables:
            return self.settings[self.variables[word]]
        flag = self.flags.get(word.replace("_", "-")) or self.flags.get("--" + word.replace("_", "-"))
        if flag is not None:
            return self.settings[flag[0]]
        return self.settings.get(_plain(word))


@functools.cache
def catalogue(engine: str) -> Catalogue:
    """The catalogue of an engine of ENGINES, or of the common environment.

    Raises:
        KeyError: nobody wrote one for that engine.
    """
    if engine not in (*ENGINES, COMMON):
        raise KeyError(engine)
    head, *lines = _lines(f"{engine}.names.jsonl")
    releases = tuple(head["versions"])
    settings = {
        line["name"]: msgspec.convert({**line, "engine": engine, "releases": releases}, Setting)
        for line in lines
    }
    written_head, *written = _lines(f"{engine}.written.jsonl")
    judgements = {line["name"]: msgspec.convert(line, Judgement) for line in written if "name" in line}
    aside = {name: line["reason"] for line in written if "names" in line for name in line["names"]}
    return Catalogue(
        engine=engine,
        releases=releases,
        settings=settings,
        judgements=judgements,
        set_aside=aside,
        source=written_head["source"],
        flags=_flags(settings),
        variables={setting.env: name for name, setting in settings.items() if setting.env},
    )


def _lines(name: str) -> list[dict[str, Any]]:
    content = resources.files("stepline.facts.settings").joinpath(name).read_bytes()
    return [msgspec.json.decode(line) for line in content.splitlines()]


def _flags(settings: Mapping[str, Setting]) -> dict[str, tuple[str, Any]]:
    """Newer names win over older ones that were spelled alike; a setting's own name wins over an alias."""
    found: dict[str, tuple[str, Any]] = {}
    for name, setting in sorted(settings.items(), key=lambda item: item[1].until is None):
        for flag in setting.flags if setting.flags is not None else setting.spelled:
            bare, stored, value = flag.partition("=")
            found[bare.replace("_", "-")] = (name, _stored(value) if stored else None)
    for name, setting in settings.items():
        own = "--" + name.replace("_", "-")
        if own in setting.spelled:
            found[own] = (name, None)
    return found


def _stored(text: str) -> Any:
    return {"True": True, "False": False}.get(text, text)


def _plain(word: str) -> str:
    """`Compilation-Config.cudagraph-mode` as `compilation_config.cudagraph_mode`."""
    return ".".join(_SEPARATORS.sub("_", part) for part in word.strip().lstrip("-").lower().split("."))
