"""Kernel names of packages by the file that defines them."""

import ast
import re
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_names.archives import label, members
from stepline.facts.kernel_grammar import spoken, unhashed

_GLOBAL = re.compile(
    rb"(?:__global__|CUTLASS_GLOBAL)\s+(?:(?:static|inline|extern|void|__launch_bounds__|__cluster_dims__|__maxnreg__|__block_size__|[A-Z][A-Z0-9_]+)\b\s*"
    rb"(?:\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\s*)?)+([A-Za-z_]\w*)\s*(?:<[^<>()]*>\s*)?\("
)
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_MANGLED = re.compile(rb"\x00(_Z[A-Za-z0-9_.$]{4,8000})\x00")
_JITS = re.compile(r"(triton|gluon|dist)\.jit$|cute\.kernel$|T\.prim_func$|^(triton_)?jit$")
_LAUNCH = re.compile(rb"\b([A-Za-z_]\w*)\s*\[")
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
_DOT = {"dot", "dot_scaled", "wgmma", "tcgen05_mma", "warp_group_dot", "gemm"}
"""Calls of `tl`, Gluon, CuTe and TileLang that multiply on tensor cores."""


def packages(archives: Iterable[Path]) -> list[dict[str, Any]]:
    """Each archive's kernels by file; an older release of a package holds only names that the newer lacks."""
    known: defaultdict[str, set[str]] = defaultdict(set)
    found = []
    for archive in archives:
        package, version = label(archive)
        files, dots, used = _read(archive)
        inner = used.called - used.launched
        kept: dict[str, list[str]] = {}
        folders: defaultdict[str, set[str]] = defaultdict(set)
        for path, names in files.items():
            folder = folders[path.rpartition("/")[0]]  # a generated family is listed with its first file
            if new := sorted(name for name in names - known[package] - folder - inner if _says(name)):
                kept[path] = new
                folder |= names
        here = {name for names in kept.values() for name in names}
        found.append({"package": package, "version": version, "files": kept, "dot": sorted(dots & here)})
        known[package] |= here
    return found


@dataclass
class _Used:
    """How a package's Triton functions are used: called by other kernels, launched by the host."""

    called: set[str]
    launched: set[str]


def _read(archive: Path) -> tuple[dict[str, set[str]], set[str], _Used]:
    files: dict[str, set[str]] = {}
    dots: set[str] = set()
    used = _Used(set(), set())
    for member, content in members(archive):
        for path, names, dot in kernels(member, content):
            files[path] = names
            dots |= dot
        if member.endswith(".py") and b"[" in content:
            used.launched |= {name.decode() for name in _LAUNCH.findall(content)}
            if b"jit" in content:
                used.called |= _called(content)
    return files, dots, used


def _called(content: bytes) -> set[str]:
    """Functions that the jitted functions of a file call by name."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return set()
    jitted = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and _jitted(node))
    calls = (call for node in jitted for call in ast.walk(node) if isinstance(call, ast.Call))
    return {call.func.id for call in calls if isinstance(call.func, ast.Name)}


def _says(name: str) -> bool:
    """Whether a name says anything: no bare `kernel`, macro or keyword."""
    return name.lower().strip("_") not in _EMPTY and not re.fullmatch(r"[A-Z0-9_]+|__\w+__", name)


def kernels(path: str, content: bytes) -> Iterator[tuple[str, set[str], set[str]]]:
    """A file, the kernels that it defines, and those of them whose body multiplies on tensor cores."""
    if path.endswith(".so"):
        for source, names in _library(content).items():
            yield f"{path}:{source}", names, set()
    elif path.endswith(".py"):
        if b"jit" in content or b"cute.kernel" in content or b"prim_func" in content:
            yield path, *_python(content)
    elif b"__global__" in content or b"CUTLASS_GLOBAL" in content:
        names = {unhashed(name.decode()) for name in _GLOBAL.findall(_COMMENT.sub(b"", content))}
        yield path, names, set()


def _python(content: bytes) -> tuple[set[str], set[str]]:
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return set(), set()
    bodies: dict[str, ast.FunctionDef] = {}
    wanted: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            bodies[node.name] = node
            if _jitted(node):
                wanted.add(node.name)
        elif isinstance(node, ast.ClassDef) and any(
            isinstance(one, ast.FunctionDef) and _jitted(one, "cute") for one in node.body
        ):
            wanted.add(node.name)  # CuTe names a compiled kernel for its class
    dots = {unhashed(name) for name in wanted if _multiplies(name, bodies, set())}
    return {unhashed(name) for name in wanted}, dots


def _jitted(node: ast.FunctionDef, only: str = "") -> bool:
    marks = (ast.unparse(mark).partition("(")[0] for mark in node.decorator_list)
    return any(_JITS.search(mark) and only in mark for mark in marks)


def _multiplies(name: str, bodies: dict[str, ast.FunctionDef], seen: set[str]) -> bool:
    """Whether a function of the file, or one of the file's own that it calls, multiplies tiles."""
    if name not in bodies or name in seen:
        return False
    seen.add(name)
    for node in ast.walk(bodies[name]):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if (isinstance(node.func, ast.Attribute) and called in _DOT) or _multiplies(called, bodies, seen):
                return True
    return False


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
