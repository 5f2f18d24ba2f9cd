"""Kernel names of packages by the file that defines them."""

import re
import struct
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kernel_names import python
from kernel_names.archives import label, members
from stepline.facts.kernel_grammar import spoken, unhashed

_GLOBAL = re.compile(
    rb"(?:__global__|CUTLASS_GLOBAL)\s+(?:(?:static|inline|extern|void|__launch_bounds__|__cluster_dims__|__maxnreg__|__block_size__|[A-Z][A-Z0-9_]+)\b\s*"
    rb"(?:\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\s*)?)+([A-Za-z_]\w*)\s*(?:<[^<>()]*>\s*)?\("
)
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_MANGLED = re.compile(rb"\x00(_Z[A-Za-z0-9_.$]{4,8000})\x00")
_EMPTY = {
    "kernel",
    "kern",
    "main",
    "name",
    "reduce",
    "prefix",
    "kernel2",
    "ignore",
    "dummy_kernel",
    "run",
    "body",
    "copy",
}
_FOREIGN = {"std", "cuda", "thrust", "cub", "cute"}
"""Namespaces whose names in a library are no kernels of its own."""


def packages(archives: Iterable[Path]) -> list[dict[str, Any]]:
    """Each archive's kernels by file; an older release of a package holds only names that the newer lacks.

    `dot` lists Triton kernels that multiply on tensor cores, `unread` kernels in Python whose bodies were not read.
    """
    known: defaultdict[str, set[str]] = defaultdict(set)
    found = []
    for archive in archives:
        package, version = label(archive)
        files, functions = _read(archive)
        kept: dict[str, list[str]] = {}
        folders: defaultdict[str, set[str]] = defaultdict(set)
        for path, names in files.items():
            folder = folders[path.rpartition("/")[0]]  # a generated family is listed with its first file
            if new := sorted(name for name in names - known[package] - folder if _says(name)):
                kept[path] = new
                folder |= names
        here = {name for names in kept.values() for name in names}
        dot = sorted(functions.multiplying() & functions.triton & here)
        unread = sorted((functions.names - functions.triton) & here)
        found.append({"package": package, "version": version, "files": kept, "dot": dot, "unread": unread})
        known[package] |= here
    return found


def _read(archive: Path) -> tuple[dict[str, set[str]], python.Functions]:
    files: dict[str, set[str]] = {}
    functions = python.Functions()
    for path, content in members(archive):
        if path.endswith(".py"):
            functions.add(own := python.read(content))
            files[path] = own.names
        elif path.endswith(".so"):
            files |= {f"{path}:{source}": names for source, names in _library(content).items()}
        elif b"__global__" in content or b"CUTLASS_GLOBAL" in content:
            files[path] = {unhashed(name.decode()) for name in _GLOBAL.findall(_COMMENT.sub(b"", content))}
    return files, functions


def _says(name: str) -> bool:
    """Whether a name says anything: no bare `kernel`, macro or keyword."""
    return name.lower().strip("_") not in _EMPTY and not re.fullmatch(r"[A-Z0-9_]+|__\w+__", name)


def _library(content: bytes) -> dict[str, set[str]]:
    """Names under which a library registers kernels, by the source file that mangling kept ("" without one)."""
    files: defaultdict[str, set[str]] = defaultdict(set)
    for mangled in _MANGLED.findall(_read_only(content).replace(b"\x00", b"\x00\x00")):
        name = spoken(mangled.decode())
        foreign = any(space in _FOREIGN or space.startswith("_INTERNAL_") for space in name.spaces)
        if re.fullmatch(r"[A-Za-z_]\w{2,}", name.base) and not foreign and not name.wraps:
            files[name.file or ""].add("::".join((*name.spaces, name.base)))
    return files


def _read_only(elf: bytes) -> bytes:
    if elf[:4] != b"\x7fELF" or elf[4] != 2:
        return b""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    rows = [struct.unpack_from("<IIQQQQ", elf, table + i * size) for i in range(count)]
    text = rows[names][4]
    for name, _, _, _, offset, length in rows:
        end = elf.index(b"\x00", text + name)
        if elf[text + name : end] == b".rodata":
            return elf[offset : offset + length]
    return b""
