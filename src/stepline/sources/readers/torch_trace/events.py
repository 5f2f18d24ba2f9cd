"""Typed decoding of trace events: fast for what the profiler writes, patient with what has gone wrong.

Format: Chrome trace events as PyTorch's Kineto writes them (libkineto/src/output_json.cpp).
"""

import re
from functools import reduce
from operator import or_
from typing import Any

import msgspec

from stepline.sources.readers.torch_trace.arguments import NO_ARGS, Args, loosely


class Span(msgspec.Struct, tag="X", tag_field="ph", gc=False):
    """A complete event, the only kind that carries time spent; `ts` and `dur` in microseconds."""

    name: str
    ts: float
    cat: str = ""
    dur: float = 0.0
    tid: int | str = 0
    args: Args = NO_ARGS


class TextSpan(msgspec.Struct, tag="X", tag_field="ph", gc=False):
    """The same with times as written, for absolute times that a float64 would round to 250 ns."""

    name: str
    ts: msgspec.Raw
    cat: str = ""
    dur: msgspec.Raw = msgspec.Raw(b"0")
    tid: int | str = 0
    args: Args = NO_ARGS


class _LooseSpan(msgspec.Struct, tag="X", tag_field="ph"):
    name: str
    ts: msgspec.Raw
    cat: str = ""
    dur: msgspec.Raw = msgspec.Raw(b"0")
    tid: int | str = 0
    args: msgspec.Raw = msgspec.Raw(b"{}")


_PHASES = "stfMiIBEbenCRPNODcVv(),"
"""Phases of the Chrome trace format other than X; their events are counted and skipped."""
_OTHERS = tuple(
    msgspec.defstruct(f"Other{ord(phase)}", [], tag=phase, tag_field="ph", gc=False, namespace={"cat": None})
    for phase in _PHASES
)
AnySpan = Span | TextSpan

_FAST: Any = msgspec.json.Decoder(list[reduce(or_, (Span, *_OTHERS))], strict=False)  # type: ignore[misc]
_TEXT: Any = msgspec.json.Decoder(list[reduce(or_, (TextSpan, *_OTHERS))], strict=False)  # type: ignore[misc]

EVENT_EDGE = re.compile(rb'\s*\}\s*,\s*\{\s*(?=")')
"""Between two events. The quote cannot stand unescaped inside a string, so names cannot match."""
_LIST_END = re.compile(rb"\}\s*,?\s*\](?=\s*(?:[,}]|$))")
_SPACE_FOR_CONTROL = bytes(max(code, 32) for code in range(256))
_NOT_A_NUMBER = re.compile(rb"(?<=[:\[,])(\s*)[+-]?(?:Infinity|infinity|inf|NaN|nan)(?=\s*[,\]}])")
_TRAILING_COMMA = re.compile(rb",(\s*[\]}])")
_LONE_BACKSLASH = re.compile(rb'\\(?!["\\/bfnrtu])')
_NAME = re.compile(rb'("name"\s*:\s*")(.*?)("\s*,\s*"(?:ph|cat|pid|tid|ts|dur|args|s|id)"\s*:)', re.DOTALL)


def decode(text: bytes | memoryview, *, text_times: bool) -> list[Any]:
    """All events of a well-formed list, non-spans included.

    Raises:
        msgspec.DecodeError: when any event of it is malformed (then `decode_patiently`).
        UnicodeDecodeError: when a name is not UTF-8.
    """
    events: list[Any] = (_TEXT if text_times else _FAST).decode(text)
    return events


def decode_patiently(body: bytes, *, text_times: bool) -> tuple[list[Any], list[bytes], bytes | None]:
    """Event by event: what can be read or mended, the pieces that cannot, and what follows the list's end."""
    events: list[Any] = []
    broken: list[bytes] = []
    pieces = EVENT_EDGE.split(body)
    for index, inner in enumerate(pieces):
        piece = (b"" if index == 0 else b"{") + inner + (b"" if index == len(pieces) - 1 else b"}")
        mended = _one(piece, text_times=text_times)
        if mended is None and (end := _LIST_END.search(piece)):
            last = _one(piece[: end.end() - 1].rstrip().rstrip(b","), text_times=text_times)
            rest = piece[end.end() :] + b"".join(b"},{" + more for more in pieces[index + 1 :])
            return events + (last or []), broken + ([] if last else [piece]), rest
        if mended is not None:
            events += mended
        elif piece.strip(b" \r\n\t,]}"):
            broken.append(piece)
    return events, broken, None


def _one(piece: bytes, *, text_times: bool) -> list[Any] | None:
    for mend in (bytes, _mend, _mend_name):
        try:
            return decode(b"[%b]" % mend(piece), text_times=text_times)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return _loose(_mend(piece), text_times=text_times)


def _loose(piece: bytes, *, text_times: bool) -> list[Any] | None:
    """An event whose arguments have a type they should not have."""
    try:
        span = msgspec.json.decode(piece, type=_LooseSpan, strict=False)
        args = loosely(bytes(span.args))
        if text_times:
            ts, dur = span.ts.copy(), span.dur.copy()
            return [TextSpan(name=span.name, ts=ts, dur=dur, cat=span.cat, tid=span.tid, args=args)]
        ts_us, dur_us = (msgspec.json.decode(raw, type=float, strict=False) for raw in (span.ts, span.dur))
        return [Span(name=span.name, ts=ts_us, dur=dur_us, cat=span.cat, tid=span.tid, args=args)]
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _mend(piece: bytes) -> bytes:
    piece = piece.decode("utf-8", "replace").encode()
    piece = piece.translate(_SPACE_FOR_CONTROL)
    piece = _NOT_A_NUMBER.sub(rb"\1null", piece)
    piece = _TRAILING_COMMA.sub(rb"\1", piece)
    return _LONE_BACKSLASH.sub(rb"\\\\", piece)


def _mend_name(piece: bytes) -> bytes:
    def escape(match: re.Match[bytes]) -> bytes:
        name = match[2].replace(b'\\"', b'"').replace(b'"', b'\\"')
        return match[1] + name + match[3]

    return _NAME.sub(escape, _mend(piece), count=1)
