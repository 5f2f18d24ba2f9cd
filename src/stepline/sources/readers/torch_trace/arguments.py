"""The `args` of the events that are kept (libkineto MetadataFieldCatalog.h and CuptiActivity.h)."""

from typing import Any, TypeVar

import msgspec


class GpuArgs(msgspec.Struct, gc=False):
    """Of a kernel, copy or fill; −1 is not recorded."""

    device: int = -1
    stream: int = -1
    correlation: int = -1
    operator: int = msgspec.field(name="External id", default=-1)
    operator_2021: int = msgspec.field(name="external id", default=-1)
    registers: int = msgspec.field(name="registers per thread", default=-1)
    shared_bytes: int = msgspec.field(name="shared memory", default=-1)
    grid: tuple[int, int, int] = (-1, -1, -1)
    block: tuple[int, int, int] = (-1, -1, -1)
    moved_bytes: int = msgspec.field(name="bytes", default=-1)
    graph_node: int = msgspec.field(name="graph node id", default=-1)
    collective: str | None = msgspec.field(name="Collective name", default=None)


class CallArgs(msgspec.Struct, gc=False):
    """Of a runtime or driver call."""

    correlation: int = -1


class OperatorArgs(msgspec.Struct, gc=False):
    """Of a framework operator."""

    external: int = msgspec.field(name="External id", default=-1)
    external_2021: int = msgspec.field(name="external id", default=-1)
    shapes: msgspec.Raw = msgspec.field(name="Input Dims", default=msgspec.Raw(b""))
    dtypes: msgspec.Raw = msgspec.field(name="Input type", default=msgspec.Raw(b""))


class _Nothing(msgspec.Struct, gc=False):
    pass


Args = TypeVar("Args", GpuArgs, CallArgs, OperatorArgs)
_DECODERS: dict[type[Any], Any] = {
    kind: msgspec.json.Decoder(list[kind], strict=False)  # type: ignore[valid-type]
    for kind in (GpuArgs, CallArgs, OperatorArgs)
}


def decode_all(raws: list[msgspec.Raw], kind: type[Args]) -> list[Args]:
    """The arguments of many events at once; an odd one is read field by field and keeps what fits."""
    try:
        found: list[Args] = _DECODERS[kind].decode(b"[" + b",".join(raws) + b"]")
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = [_loosely(bytes(raw), kind) for raw in raws]
    return found


def _loosely(raw: bytes, kind: type[Args]) -> Args:
    try:
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return kind()
    good: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name in fields:
            try:
                value = fields[field.encode_name]
                good[field.name] = (
                    value.copy()
                    if field.type is msgspec.Raw
                    else msgspec.json.decode(value, type=field.type, strict=False)
                )
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
    return kind(**good)
