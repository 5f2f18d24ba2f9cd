"""The parts of a kernel's name: as compilers mangle it, as profilers print it, as Triton and Inductor make it."""

import re
from functools import lru_cache

import msgspec

LONGEST_NAME = 8192
"""Characters of a kernel's name that are looked at: real ones have up to 5,000, a damaged file's may have millions."""
_INDUCTOR = re.compile(r"^triton_(poi|red|per|spl|tem|mm|for)_(?:fused_)?(.*)$")
_FUSED = (
    ("norm", re.compile(r"rsqrt|(?<!_)norm|layer_norm|rms_norm", re.IGNORECASE)),
    ("sampling", re.compile(r"argmax|multinomial|sort|exponential", re.IGNORECASE)),
    ("quantise", re.compile(r"float8|fp8|quantize", re.IGNORECASE)),
)
"""What a generated kernel computes by the operators fused in it. It is named for products that it only follows."""
_SPECIALISED = re.compile(r"(?<=\w)_(?:\d+d?e?c?)+$")
_HASH = re.compile(r"_(?=[0-9a-f]*\d)[0-9a-f]{16,}(?=_|$)")
_FILE = re.compile(r"_GLOBAL__N__[0-9a-f]+_\d+_(\w+?)_(cu|hip|cpp)_[0-9a-f]+")
_WRAPPERS = {
    "device_kernel",
    "Kernel",
    "Kernel2",
    "kernel",
    "device_kernel_entry",
    "main_kernel",
    "_kernel_agent",
}
"""Kernels whose work is that of the class they are made with."""


class Spoken(msgspec.Struct, frozen=True):
    """A kernel's own name, the namespaces around it, the file that mangling kept, and what it is made with."""

    base: str
    spaces: tuple[str, ...] = ()
    file: str | None = None
    made_with: tuple[str, ...] = ()
    """Names inside its template arguments, in order."""

    @property
    def wraps(self) -> bool:
        """Whether the name says nothing without what it is made with."""
        return self.base in _WRAPPERS


@lru_cache(maxsize=20_000)
def spoken(name: str) -> Spoken:
    """Read a kernel's name; one that follows no grammar is its own base."""
    name = name[:LONGEST_NAME].strip()
    if name.startswith(("_Z", "__Z")):
        return _mangled(name)
    return _printed(name)


def unhashed(name: str) -> str:
    """A generated name without the digest that tells its variants apart."""
    return _HASH.sub("", name)


def compiled(name: str) -> str | None:
    """The part of a kernel that PyTorch's compiler wrote (`triton_poi_fused_add_mul_0`), None for any other name.

    Pointwise, reducing and persistent kernels multiply no matrices, whatever operators their name repeats; only
    templates do.
    """
    if not (found := _INDUCTOR.match(name)):
        return None
    if found[1] in ("tem", "mm"):
        return "attention" if "attention" in found[2] else "gemm"
    return next((part for part, words in _FUSED if words.search(found[2])), "elementwise")


def _printed(name: str) -> Spoken:
    head, arguments = _outside(name)
    head = head.replace("(anonymous namespace)", "{anonymous}").split("(")[0]
    words = head.replace("<unnamed>", "{anonymous}").split("::")
    base = words[-1].split()[-1] if words[-1].split() else ""
    spaces = tuple(word.split()[-1] for word in words[:-1] if word.split())
    if not spaces and not arguments:
        base = unhashed(_SPECIALISED.sub("", base))
    kept = next((found for space in spaces if (found := _FILE.search(space))), None)
    return Spoken(
        base=base,
        spaces=tuple(space for space in spaces if not space.startswith(("{", "_GLOBAL__N"))),
        file=f"{kept[1]}.{kept[2]}" if kept else None,
        made_with=tuple(re.findall(r"[A-Za-z_]\w{2,}", arguments)),
    )


def _outside(name: str) -> tuple[str, str]:
    """A printed name without its template arguments, and those (return type and parameters left out)."""
    depth, head, inside = 0, [], []
    for place, sign in enumerate(name):
        if sign == "<" and not name.startswith("<unnamed>", place):
            depth += 1
            inside.append(" ")
        elif sign == ">" and depth and name[place - 1] != "-":
            depth -= 1
            inside.append(" ")
        elif depth:
            inside.append(sign)
        elif sign == "(" and not name.startswith("(anonymous namespace)", place):
            break
        else:
            head.append(sign)
    return "".join(head), "".join(inside)


def _mangled(name: str) -> Spoken:
    place = name.index("Z") + 1
    nested = name[place : place + 1] == "N"
    place += nested
    words: list[str] = []
    while place < len(name):
        if name[place] in "LKVr" and not name[place].isdigit():
            place += 1
        elif name.startswith("St", place):
            words.append("std")
            place += 2
        elif found := re.compile(r"\d+").match(name, place):
            begin, length = found.end(), int(found[0])
            words.append(name[begin : begin + length])
            place = begin + length
            if not nested:
                break
        else:
            break
    if not words:
        return Spoken(base=name)
    kept = next((found for word in words if (found := _FILE.search(word))), None)
    return Spoken(
        base=unhashed(words[-1]),
        spaces=tuple(word for word in words[:-1] if not word.startswith("_GLOBAL__N")),
        file=f"{kept[1]}.{kept[2]}" if kept else None,
        made_with=tuple(_identifiers(name, place)),
    )


def _identifiers(name: str, place: int) -> list[str]:
    found: list[str] = []
    number = re.compile(r"\d+")
    while match := number.search(name, place):
        length = int(match[0])
        word = name[match.end() : match.end() + length]
        if 2 < length == len(word) and re.fullmatch(r"[A-Za-z_]\w*", word):
            found.append(word)
            place = match.end() + length
        else:
            place = match.end()
    return found
