"""Archives of evidence: zip, and tar plain, with gzip or zstd, told by content.

They are unpacked into a folder that goes again; a profiler trace inside is recognised and not condensed.
"""

import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from stepline.errors import UnreadableEvidence
from stepline.sources.peek import open_bytes

MAX_FILES = 10_000
MAX_BYTES = 8 << 30
"""Bytes that an archive may hold unpacked: traces of eight ranks are a few GiB."""


@contextmanager
def unpacked(paths: Iterable[str | Path]) -> Iterator[list[str | Path]]:
    """The same paths, archives among them replaced by a folder with what they hold.

    Raises:
        UnreadableEvidence: when an archive is damaged or holds too much.
    """
    given = list(paths)
    if not any(_is_archive(Path(one)) for one in given):
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="stepline-") as held:
        yield [
            _unpack(Path(one), Path(held) / str(at)) if _is_archive(Path(one)) else one
            for at, one in enumerate(given)
        ]


def _is_archive(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        if zipfile.is_zipfile(path):
            return True
        with open_bytes(path) as stream:
            return stream.read(512)[257:262] == b"ustar"
    except (OSError, EOFError):
        return False


def _unpack(path: Path, folder: Path) -> Path:
    inner = folder / path.name
    inner.mkdir(parents=True)
    try:
        if zipfile.is_zipfile(path):
            _unzip(path, inner)
        else:
            _untar(path, inner)
    except (
        OSError,
        EOFError,
        zipfile.BadZipFile,
        tarfile.TarError,
        NotImplementedError,
        RuntimeError,
        zlib.error,
    ) as error:
        raise UnreadableEvidence(
            f"{path.name}: the archive cannot be unpacked ({error}); unpack it yourself"
        ) from None
    return inner


def _unzip(path: Path, folder: Path) -> None:
    left, count = MAX_BYTES, 0
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.is_dir() or (target := _target(folder, member.filename)) is None:
                continue
            left, count = left - member.file_size, count + 1
            _check(path, left, count)
            with archive.open(member) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)


def _untar(path: Path, folder: Path) -> None:
    left, count = MAX_BYTES, 0
    with open_bytes(path) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            if not member.isfile() or (target := _target(folder, member.name)) is None:
                continue
            left, count = left - member.size, count + 1
            _check(path, left, count)
            source = archive.extractfile(member)
            if source is not None:
                with target.open("wb") as sink:
                    shutil.copyfileobj(source, sink)


def _target(folder: Path, name: str) -> Path | None:
    """Where a member goes; None for one that would leave the folder or is hidden."""
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", ".")]
    if not parts or any(part == ".." or part.startswith(".") or ":" in part for part in parts):
        return None
    target = folder.joinpath(*parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def _check(path: Path, left: int, count: int) -> None:
    if left < 0 or count > MAX_FILES:
        raise UnreadableEvidence(
            f"{path.name}: holds over {MAX_FILES:,} files or {MAX_BYTES >> 30} GiB; give the part that matters"
        )
