"""What is drawn: one change, or two, of a server that would otherwise run as its twin does."""

from typing import Literal

import msgspec

Kind = Literal["argument", "environment", "machine", "load", "model"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change: `name` is the engine's, the machine's or the load's own word, `value` as it would be typed."""

    kind: Kind
    name: str
    value: str

    def __str__(self) -> str:
        """`--max-running-requests 8`, `NCCL_P2P_DISABLE=1`, `cores 2`."""
        if self.kind == "environment":
            return f"{self.name}={self.value}"
        return f"{self.name} {self.value}".rstrip()


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """Requests of another kind that come beside the load, one after `every_s`."""

    every_s: float
    input_tokens: int
    output_tokens: int
    sampling: dict[str, int | float | bool] = {}


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is started and loaded: the twin's, or with changes in it."""

    model: str
    """A key of the plan's models."""
    flags: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    cores: int | None = None
    """CPU cores that all of the engine's processes share; None leaves all to them."""
    neighbour: str | None = None
    """Name of a program of `machine.NEIGHBOURS` that runs beside the server."""
    concurrency: tuple[int, ...] = ()
    input_tokens: int = 256
    output_tokens: int = 192
    shared_prefix_tokens: int = 0
    temperature: float = 0.0
    sampling: dict[str, int | float | bool] = {}
    """Further sampling options of every request, by the engine's own names."""
    beside: Beside | None = None


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """One case: `server` is `twin` with the changes made; both have the context."""

    seed: int
    number: int
    context: tuple[Change, ...] = ()
    changes: tuple[Change, ...]
    server: Server
    twin: Server

    def __str__(self) -> str:
        """`--page-size 64; model llama1b`: the changes, then the context."""
        return "; ".join(", ".join(map(str, part)) for part in (self.changes, self.context) if part)

    @property
    def name(self) -> str:
        """A folder name that says nothing of what was drawn."""
        return f"case-{self.seed}-{self.number:03d}"
