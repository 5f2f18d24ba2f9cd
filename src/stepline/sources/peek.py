"""The first look at a file: its opening bytes, decompressed, from which readers recognise it."""

import codecs
import io
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from stepline.errors import UnreadableEvidence

HEAD_BYTES = 1 << 20
GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


MAX_UTF16_BYTES = 256 << 20
"""Text in another encoding is turned over as a whole."""


class Peek(msgspec.Struct, frozen=True, kw_only=True):
    """A file before it is read: `name` is how it is shown, `head` its first MiB after decompression."""

    path: Path
    name: str
    size_bytes: int
    head: bytes
    on_bytes: Callable[[int], None] = lambda _count: None
    """Told how many bytes of the file, as it lies on the disk, were read since it was last told."""

    def open(self) -> AbstractContextManager[IO[bytes]]:
        """The whole content, decompressed."""
        return open_bytes(self.path, self.on_bytes)

    @property
    def binary(self) -> bool:
        """True when the opening holds a NUL byte, which no text evidence does."""
        return b"\0" in self.head[:65536]


class _Counted(io.RawIOBase):
    """A file that tells how much of it was read."""

    def __init__(self, file: IO[bytes], on_bytes: Callable[[int], None]) -> None:
        self._file = file
        self._on_bytes = on_bytes

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        content = self._file.read(size)
        self._on_bytes(len(content))
        return content

    def readinto(self, buffer: Any) -> int:
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


@contextmanager
def open_bytes(path: Path, on_bytes: Callable[[int], None] = lambda _count: None) -> Iterator[IO[bytes]]:
    """Open a plain, gzip or zstd file for reading its content, told apart by magic bytes, not by name."""
    with path.open("rb") as file:
        raw = _Counted(file, on_bytes)
        magic = file.read(4)
        file.seek(0)
        if magic.startswith(GZIP_MAGIC):
            from isal import igzip  # noqa: PLC0415  # only compressed logs need it

            with igzip.open(raw, "rb") as stream:  # type: ignore[no-untyped-call]
                yield cast("IO[bytes]", stream)
        elif magic == ZSTD_MAGIC:
            import zstandard  # noqa: PLC0415  # only compressed logs need it

            with zstandard.ZstdDecompressor().stream_reader(cast("IO[bytes]", raw)) as stream:
                yield io.BufferedReader(cast("io.RawIOBase", stream))
        elif magic.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            # PowerShell writes what it redirects in UTF-16.
            yield io.BytesIO(raw.read(MAX_UTF16_BYTES).decode("utf-16", "replace").encode())
        elif magic.startswith(codecs.BOM_UTF8):
            yield io.BytesIO(raw.read(MAX_UTF16_BYTES)[len(codecs.BOM_UTF8) :])
        else:
            yield cast("IO[bytes]", raw)


def peek(path: Path, name: str, on_bytes: Callable[[int], None] = lambda _count: None) -> Peek:
    """Read the opening of a file; `on_bytes` follows the reading of the whole later.

    Raises:
        UnreadableEvidence: when the file cannot be opened.
    """
    try:
        size = path.stat().st_size
        with open_bytes(path) as stream:
            head = _read_what_is_whole(stream, HEAD_BYTES)
    except OSError as error:
        raise UnreadableEvidence(
            f"{name}: {error.strerror or error}; check the path and its permissions"
        ) from None
    return Peek(path=path, name=name, size_bytes=size, head=head, on_bytes=on_bytes)


def _read_what_is_whole(stream: IO[bytes], limit: int) -> bytes:
    """Up to `limit` bytes; a damaged compressed stream yields what came before the damage."""
    chunks: list[bytes] = []
    left = limit
    while left > 0:
        try:
            chunk = stream.read(min(left, 1 << 16))
        except (EOFError, OSError):
            break
        if not chunk:
            break
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)
