"""Kernels that released packages ship: where each is defined, and for which part of a step it works.

`kernel_names.json` is read from the packages by `scripts/kernels.py`; `kernel_parts.toml` judges by file.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files

import msgspec

from stepline.facts.kernel_grammar import Spoken

_CUTE = "kernel_cutlass_"


class Shipped(msgspec.Struct, frozen=True):
    """A kernel of a package, by the file that defines it."""

    name: str
    package: str
    version: str
    file: str
    dot: bool | None
    """Whether its body multiplies tiles on tensor cores; None where only its name was read (CUDA, CuTe)."""

    @property
    def place(self) -> str:
        """What the judgement looks at."""
        return f"{self.package}/{self.file}"


class _Package(msgspec.Struct):
    package: str
    version: str
    files: dict[str, list[str]]
    dot: list[str]
    unread: list[str]


class _Rule(msgspec.Struct, frozen=True):
    part: str
    why: str
    at: str
    firm: bool = False


class _Named(msgspec.Struct, frozen=True):
    part: str
    why: str
    names: tuple[str, ...]


class _Judgement(msgspec.Struct, frozen=True):
    file: tuple[_Rule, ...]
    named: tuple[_Named, ...] = ()


def shipped(name: Spoken) -> tuple[Shipped, ...]:
    """Every package's kernel of that name; those whose namespaces or file fit, where some do."""
    if name.wraps:
        return ()
    found = _names().get(name.base, ())
    if not found and name.base.startswith(_CUTE):
        found = next((_names()[word] for word in _classes(name.base) if word in _names()), ())
    if len(found) < 2:
        return found
    close = [one for one in found if name.file and one.file.endswith(name.file)]
    close = close or [one for one in found if set(one.name.split("::")[:-1]) & set(name.spaces)]
    return tuple(close) or found


def _classes(base: str) -> Iterator[str]:
    """What may be the class of a CuTe kernel: its name runs function, module and class together, without a sign."""
    joined = base.removeprefix(_CUTE).partition("_object_at")[0]
    yield from (joined[place:] for place in range(len(joined) - 5) if joined[place].isupper())


def named_part(name: str) -> str | None:
    """The part that an exception gives the kernel of that name."""
    return _exceptions().get(name)


def file_part(found: tuple[Shipped, ...], *, firm: bool) -> str | None:
    """The part that the files of these kernels say, None where they disagree; with `firm` all must say it."""
    said = {_by_file(one.place, firm) for one in found}
    if not firm:
        said.discard(None)
    return said.pop() if len(said) == 1 else None


def tensor(found: tuple[Shipped, ...]) -> bool | None:
    """Whether a Triton kernel multiplies on tensor cores, None where none of that name tells or they differ."""
    said = {one.dot for one in found}
    return said.pop() if len(said) == 1 else None


@lru_cache(maxsize=20_000)
def _by_file(place: str, firm: bool) -> str | None:  # noqa: FBT001 - lru_cache wants plain arguments
    return next((part for part, at in _rules(firm) if at.search(place)), None)


@lru_cache(maxsize=2)
def _rules(firm: bool) -> tuple[tuple[str, re.Pattern[str]], ...]:  # noqa: FBT001
    return tuple(
        (one.part, re.compile(one.at, re.IGNORECASE)) for one in _judgement().file if one.firm >= firm
    )


@lru_cache(maxsize=1)
def _exceptions() -> dict[str, str]:
    return {name: one.part for one in _judgement().named for name in one.names}


@lru_cache(maxsize=1)
def _judgement() -> _Judgement:
    text = (files("stepline.facts") / "kernel_parts.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Judgement)


@lru_cache(maxsize=1)
def packages() -> tuple[_Package, ...]:
    """Everything that was read, package by package."""
    content = (files("stepline.facts") / "kernel_names.json").read_bytes()
    return msgspec.json.decode(content, type=tuple[_Package, ...])


@lru_cache(maxsize=1)
def _names() -> dict[str, tuple[Shipped, ...]]:
    found: dict[str, list[Shipped]] = {}
    for package in packages():
        dots, unread = set(package.dot), set(package.unread)
        for file, names in package.files.items():
            for name in names:
                dot = name in dots if file.endswith(".py") and name not in unread else None
                one = Shipped(name, package.package, package.version, file, dot)
                found.setdefault(name.rpartition("::")[2], []).append(one)
    return {name: tuple(ones) for name, ones in found.items()}
