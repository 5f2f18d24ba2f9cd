"""The `args` of events: one record for all categories (libkineto MetadataFieldCatalog.h, CuptiActivity.h)."""

from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from stepline.evidence.trace_arrays import Column

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


def triples(strings: list[str], indices: Column) -> Column:
    """Grids or blocks, n × 3, from indices of their JSON texts; −1 thrice where one holds no three integers."""
    known = np.full((len(strings) + 1, 3), -1, np.int64)  # the last row is for index −1
    for index in np.unique(indices[indices >= 0]).tolist():
        with suppress(msgspec.DecodeError, OverflowError):
            known[index] = msgspec.json.decode(strings[index], type=tuple[int, int, int], strict=False)
    return known[indices]
