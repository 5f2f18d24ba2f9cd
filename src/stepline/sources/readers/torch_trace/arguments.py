"""The `args` of events: one record for all categories (libkineto MetadataFieldCatalog.h, CuptiActivity.h)."""

from typing import Any

import msgspec

_NO_JSON = msgspec.Raw(b"")


class Args(msgspec.Struct, frozen=True, gc=False):
    """What is used of any event's arguments; −1 and empty stand for not recorded.

    `grid` and `block` stay undecoded: on an operator of a Triton kernel the same key holds text.
    """

    correlation: int = -1
    external: int = msgspec.field(name="External id", default=-1)
    external_2021: int = msgspec.field(name="external id", default=-1)
    device: int = -1
    stream: int = -1
    registers: int = msgspec.field(name="registers per thread", default=-1)
    shared_bytes: int = msgspec.field(name="shared memory", default=-1)
    grid: msgspec.Raw = _NO_JSON
    block: msgspec.Raw = _NO_JSON
    moved_bytes: int = msgspec.field(name="bytes", default=-1)
    graph_node: int = msgspec.field(name="graph node id", default=-1)
    collective: msgspec.Raw = msgspec.field(name="Collective name", default=_NO_JSON)
    shapes: msgspec.Raw = msgspec.field(name="Input Dims", default=_NO_JSON)
    dtypes: msgspec.Raw = msgspec.field(name="Input type", default=_NO_JSON)


NO_ARGS = Args()


def loosely(raw: bytes) -> Args:
    """Field by field, keeping what fits, where one field has a type it should not have."""
    try:
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return NO_ARGS
    good: dict[str, Any] = {}
    for field in msgspec.structs.fields(Args):
        if (value := fields.get(field.encode_name)) is None:
            continue
        try:
            whole = field.type is msgspec.Raw
            good[field.name] = value.copy() if whole else msgspec.json.decode(value, type=int, strict=False)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return Args(**good)


class Triples(dict[bytes, int]):
    """Indices in `known` of grids and blocks by their bytes; −1 thrice where one holds no three integers."""

    def __init__(self) -> None:
        super().__init__({b"": 0})
        self.known: list[tuple[int, int, int]] = [(-1, -1, -1)]

    def __missing__(self, text: bytes) -> int:
        try:
            triple = msgspec.json.decode(text, type=tuple[int, int, int], strict=False)
        except msgspec.DecodeError:
            triple = self.known[0]
        self[text] = number = len(self.known)
        self.known.append(triple)
        return number
