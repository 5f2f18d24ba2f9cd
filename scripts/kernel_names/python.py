"""Kernels written in Python: Triton and Gluon functions, CuTe classes, TileLang programs; read, never imported.

Functions that only other kernels call are among them: another release may launch what this one inlines.
"""

import ast
import re
from dataclasses import dataclass, field

from stepline.facts.kernel_grammar import unhashed

_TRITON = re.compile(r"(triton|gluon|dist)\.jit$|^(triton_)?jit$")
_OTHER = re.compile(r"cute\.kernel$|T\.prim_func$")
_DOT = {"dot", "dot_scaled", "warpgroup_mma", "tcgen05_mma", "wgmma", "mma_v2", "mfma", "mfma_scaled", "wmma"}
"""Calls of tl and Gluon that multiply tiles on tensor cores."""


@dataclass
class Functions:
    """What the Python files of a package define and use."""

    names: set[str] = field(default_factory=set)
    triton: set[str] = field(default_factory=set)
    """Names whose bodies are Triton's, so that a missing product means none."""
    dots: set[str] = field(default_factory=set)
    calls: dict[str, set[str]] = field(default_factory=dict)
    """By jitted function, the functions that it calls by name."""

    def add(self, other: "Functions") -> None:
        """Take in another file of the package."""
        self.names |= other.names
        self.triton |= other.triton
        self.dots |= other.dots
        for name, called in other.calls.items():
            self.calls.setdefault(name, set()).update(called)

    def multiplying(self) -> set[str]:
        """Functions that multiply tiles themselves or through one that they call."""
        found, size = set(self.dots), -1
        while len(found) != size:
            size = len(found)
            found |= {name for name, called in self.calls.items() if called & found}
        return found


def read(content: bytes) -> Functions:
    """The kernels of one file; a file that is no Python has none."""
    found = Functions()
    if not any(word in content for word in (b"jit", b"cute.kernel", b"prim_func")):
        return found
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(_marked(one, _OTHER) for one in node.body):
            found.names.add(unhashed(node.name))  # CuTe names a compiled kernel for its class
        elif isinstance(node, ast.FunctionDef) and _marked(node, _OTHER):
            found.names.add(unhashed(node.name))
        elif isinstance(node, ast.FunctionDef) and _marked(node, _TRITON):
            _triton(node, found)
    return found


def _triton(node: ast.FunctionDef, found: Functions) -> None:
    name = unhashed(node.name)
    calls = [call.func for call in ast.walk(node) if isinstance(call, ast.Call)]
    found.names.add(name)
    found.triton.add(name)
    found.calls.setdefault(name, set()).update(call.id for call in calls if isinstance(call, ast.Name))
    if any(isinstance(call, ast.Attribute) and call.attr in _DOT for call in calls):
        found.dots.add(name)


def _marked(node: ast.AST, mark: re.Pattern[str]) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        mark.search(ast.unparse(one).partition("(")[0]) for one in node.decorator_list
    )
