"""The members of a wheel, an sdist or a source tree, one at a time, and what package and version they are of."""

import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

READ = (".py", ".cu", ".cuh", ".h", ".hpp", ".inl", ".inc", ".jinja", ".hip", ".so")
_SKIPPED = re.compile(
    r"(^|/)(tests?|testing|benchmarks?|examples?|docs?|3rdparty|third-party|tutorials?|tools|cccl|spdlog|nvbench|cpu|rocprim|\w*train(_\w+)?)(/|$)|\.dist-info/"
)


def label(archive: Path) -> tuple[str, str]:
    """Package and version: of the file's name, or of `PATH@VERSION` for a tree."""
    if archive.suffix == ".whl":
        package, version = archive.name.split("-")[:2]
    elif archive.name.endswith(".tar.gz"):
        package, version = archive.name.removesuffix(".tar.gz").rsplit("-", 1)
    else:
        package, _, version = archive.name.partition("@")
    return re.sub(r"[-_.]+", "-", package).lower(), version


def members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Path inside the package and content of every file that may hold kernels, tests and examples left out."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for entry in wheel.infolist():
                if _wanted(entry.filename):
                    yield entry.filename, wheel.read(entry)
    elif archive.name.endswith(".tar.gz"):
        with tarfile.open(archive) as sdist:
            for member in sdist:
                path = member.name.partition("/")[2]
                if member.isfile() and _wanted(path) and (file := sdist.extractfile(member)):
                    yield path, file.read()
    else:
        tree = archive if archive.is_dir() else Path(str(archive).partition("@")[0])
        for path in sorted(tree.rglob("*")):
            inside = path.relative_to(tree).as_posix()
            if path.is_file() and _wanted(inside):
                yield inside, path.read_bytes()


def _wanted(path: str) -> bool:
    return path.endswith(READ) and not _SKIPPED.search(path)
