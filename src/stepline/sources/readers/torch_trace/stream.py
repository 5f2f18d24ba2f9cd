"""Bytes of a trace file, whatever its name says: plain or gzip, whole or cut short."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

PIECE_BYTES = 2 << 20
"""Small enough that a decoded piece stays near the caches, large enough that per-piece costs vanish."""


class CutShort(Exception):
    """The compressed stream ended or broke before its end; what came before is good."""


def pieces(path: Path) -> Iterator[bytes]:
    """Decompressed content of `path`, piece by piece; the first bytes decide, not the name.

    Raises:
        CutShort: after the last good piece of a damaged gzip stream.
    """
    with path.open("rb") as file:
        magic = file.read(2)
        file.seek(0)
        yield from _gunzip(file) if magic == b"\x1f\x8b" else iter(lambda: file.read(PIECE_BYTES), b"")


def _gunzip(file: BinaryIO) -> Iterator[bytes]:
    from isal import isal_zlib  # noqa: PLC0415 - only traces need it

    unzip = isal_zlib.decompressobj(31)
    whole = False
    try:
        while compressed := unzip.unconsumed_tail or unzip.unused_data or file.read(256 << 10):
            if unzip.eof:
                if not compressed.startswith(b"\x1f\x8b"):
                    return
                unzip = isal_zlib.decompressobj(31)
            if piece := unzip.decompress(compressed, PIECE_BYTES):
                yield piece
            whole = unzip.eof
    except (zlib.error, EOFError) as error:
        raise CutShort(str(error)) from error
    if not whole:
        raise CutShort("the gzip stream has no end")
