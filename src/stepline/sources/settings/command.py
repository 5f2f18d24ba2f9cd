"""Launch commands: which engine they start, with which settings, variables and limits."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from stepline.evidence.origin import Origin
from stepline.evidence.setting import SettingSaid
from stepline.facts.settings import COMMON, catalogue
from stepline.sources.settings.dump import said_in_environment
from stepline.sources.settings.flags import read_flags
from stepline.sources.settings.shell import MAX_WORDS, assignments, commands, container, wrappers
from stepline.sources.settings.values import parse_value


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One server that a text starts."""

    engine: str
    said: tuple[SettingSaid, ...]
    unknown: tuple[str, ...]
    """Flags that the engine's catalogue does not know."""


MARKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("dynamo", re.compile(r"(?:^| )(?:-m )?dynamo\.(?:vllm|sglang|trtllm|frontend|router)(?= |$)")),
    ("sglang", re.compile(r"(?:^|[ /])(?:-m )?sglang\.launch_server(?= |$)|(?:^|[ /])sglang serve(?= |$)")),
    (
        "vllm",
        re.compile(
            r"(?:^|[ /])vllm serve(?= |$)|(?:^| )(?:-m )?vllm\.entrypoints(?:\.\w+)*\.api_server(?= |$)"
        ),
    ),
    ("tensorrt_llm", re.compile(r"(?:^|[ /])trtllm-serve(?: serve)?(?= |$)")),
    ("llama_cpp", re.compile(r"(?:^|[ /])llama-server(?:\.exe)?(?= |$)|(?:^|[ /])llama\.cpp/server(?= |$)")),
    ("lmdeploy", re.compile(r"(?:^|[ /])lmdeploy serve api_server(?= |$)")),
    ("tgi", re.compile(r"(?:^|[ /])text-generation-launcher(?= |$)")),
)
"""How a command line names each engine's server: the project's own documents of starting it."""
IMAGES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("vllm", re.compile(r"(?:^|/)vllm-openai(?:$|[:@])")),
    ("tgi", re.compile(r"(?:^|/)text-generation-inference(?:$|[:@])")),
    ("llama_cpp", re.compile(r"(?:^|/)llama\.cpp(?::server|$|[:@])")),
)
"""Images whose entry point is the server itself, so that its arguments follow the image."""
DYNAMO_ENGINES = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt_llm"}
MODEL_FIRST = {"tensorrt_llm", "lmdeploy"}


def launches(text: str, file: str, line: int | None = None) -> tuple[Launch, ...]:
    """Every server that a shell text starts; variables that it exports on the way hold for all behind them."""
    return _launches(text, {}, Origin(file, line), 0)


def launch_of(words: Sequence[str], file: str, line: int | None = None) -> Launch | None:
    """The server that one command in its words starts (a process's own, a manifest's list); None for none."""
    found, _ = _command(list(words)[:MAX_WORDS], {}, Origin(file, line), 0)
    return found[0] if found else None


def launch_with(
    engine: str,
    words: Sequence[str],
    variables: Mapping[str, str],
    file: str,
    line: int | None = None,
) -> Launch:
    """The engine's own arguments and the variables beside them, where both are known to be."""
    return _made(engine, list(words)[:MAX_WORDS], variables, Origin(file, line))


def _launches(text: str, exported: dict[str, str], origin: Origin, depth: int) -> tuple[Launch, ...]:
    found: list[Launch] = []
    for words in commands(text):
        started, variables = _command(words, exported, origin, depth)
        found += started
        if not started:
            exported = exported | variables
    return tuple(found)


def _command(
    words: list[str], exported: dict[str, str], origin: Origin, depth: int
) -> tuple[tuple[Launch, ...], dict[str, str]]:
    """The servers that one command starts, and the variables that it sets."""
    variables, rest = assignments(words)
    limits, rest = wrappers(rest)
    inside = container(rest)
    if inside is not None:
        more, variables, rest = inside  # a container has none of the shell's variables
        limits |= more
    else:
        within, rest = assignments(rest)
        variables = {**exported, **variables, **within}
    shell = _quoted(rest)
    if shell is not None and depth < MAX_SHELLS:
        launched = _launches(shell, variables, origin, depth + 1)
        return tuple(with_limits(launch, limits, origin) for launch in launched), variables
    named = _engine(rest, from_image=inside is not None)
    if named is None:
        return (), variables
    return (with_limits(_made(*named, variables, origin), limits, origin),), variables


MAX_SHELLS = 3
"""Shells inside shells that are read."""
SEARCHED = 60
"""Words of a command in which an engine's name is looked for: launchers (`torchrun`, `srun`, `ray`) stand before it."""


def _engine(words: list[str], *, from_image: bool) -> tuple[str, list[str]] | None:
    """The engine that a command names, and the words behind its name."""
    for at in range(min(len(words), SEARCHED)):
        for engine, mark in MARKS:
            matched = _at_start(mark, words[at : at + 3])
            if matched is not None:
                used = len(matched[0].split())
                backend = words[at + used - 1].rpartition(".")[2]
                return DYNAMO_ENGINES.get(backend, engine) if engine == "dynamo" else engine, words[
                    at + used :
                ]
    if from_image and words:
        image = next((name for name, mark in IMAGES if mark.search(words[0])), None)
        return None if image is None else (image, words[1:])
    return None


def _at_start(mark: re.Pattern[str], words: Sequence[str]) -> re.Match[str] | None:
    """A match that begins with the first word, a path before its name left out."""
    if not words:
        return None
    matched = mark.search(" ".join([words[0].rsplit("/", 1)[-1], *words[1:]]))
    return matched if matched is not None and matched.start() == 0 else None


def _quoted(words: Sequence[str]) -> str | None:
    """The text of `bash -c "…"`."""
    for at, word in enumerate(words[:-2]):
        if word.rsplit("/", 1)[-1] in ("bash", "sh") and words[at + 1] in ("-c", "-lc", "-ec"):
            return words[at + 2]
    return None


def _made(engine: str, words: list[str], variables: Mapping[str, str], origin: Origin) -> Launch:
    if words and not words[0].startswith("-") and engine in MODEL_FIRST:
        words = words[1:]
    flags = read_flags(engine, words)
    given = [_said(engine, each.name, each.value, origin) for each in flags.given]
    around = said_in_environment(engine, variables, origin.file, origin.line)
    return Launch(engine=engine, said=(*given, *around), unknown=flags.unknown)


def with_limits(launch: Launch, limits: Mapping[str, str], origin: Origin) -> Launch:
    """A launch with what a container or a wrapper around it adds, by the common catalogue's names."""
    common = catalogue(COMMON).settings
    added = [_said(COMMON, name, parse_value(common[name], text), origin) for name, text in limits.items()]
    return msgspec.structs.replace(launch, said=(*launch.said, *added))


def _said(engine: str, name: str, value: Any, origin: Origin) -> SettingSaid:
    return SettingSaid(
        engine=engine, name=name, value=value, by="command", origin=Origin(origin.file, origin.line, name)
    )
