"""Where a number was read."""

from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class Origin(msgspec.Struct, frozen=True, gc=False):
    """The file, and the line or field in it, that a value was read from."""

    file: str
    line: int | None = None
    field: str | None = None

    def __str__(self) -> str:
        """`server.log:73`, `server_info.json#tp_size` or the bare file."""
        if self.line is not None:
            return f"{self.file}:{self.line}"
        return f"{self.file}#{self.field}" if self.field else self.file


class Sourced(msgspec.Struct, Generic[T], frozen=True):
    """A single value with its origin."""

    value: T
    origin: Origin
