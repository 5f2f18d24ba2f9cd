"""What an extractor found of one setting in one release."""

from dataclasses import dataclass, field
from typing import Any


class _Computed:
    """A default that the engine computes: nothing that a table could hold."""

    def __repr__(self) -> str:
        return "COMPUTED"


COMPUTED = _Computed()


@dataclass
class Found:
    """A setting as its release declares it."""

    name: str
    flags: list[str] = field(default_factory=list)
    kind: str = ""
    choices: list[Any] = field(default_factory=list)
    default: Any = COMPUTED
    where: str = ""
    resolved: bool = False
    """The engine itself may set it while it starts."""
    env: str | None = None
    help: str = ""
