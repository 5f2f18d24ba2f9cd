"""A released package opened as files of text: a wheel, an sdist or an unpacked folder."""

import re
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

TEXT = (".py", ".cpp", ".h", ".rs", ".yaml", ".md")


class Package:
    """Files by their path inside the package, read when asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: dict[str, Callable[[], bytes]] = {}
        if path.is_dir():
            for file in sorted(path.rglob("*")):
                if file.suffix in TEXT and file.is_file():
                    self.files[file.relative_to(path).as_posix()] = file.read_bytes
        elif path.suffix == ".whl":
            archive = zipfile.ZipFile(path)
            for name in archive.namelist():
                if name.endswith(TEXT):
                    self.files[name] = lambda name=name: archive.read(name)
        elif path.name.endswith(".tar.gz"):
            self._sdist(path)
        else:
            raise SystemExit(f"{path}: give a wheel, an sdist (.tar.gz) or a folder of sources")

    def _sdist(self, path: Path) -> None:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and member.name.endswith(TEXT):
                    handle = archive.extractfile(member)
                    text = handle.read() if handle else b""
                    self.files[member.name.partition("/")[2]] = lambda text=text: text

    @property
    def name_and_version(self) -> tuple[str, str]:
        """From the file's own name: `vllm-0.32.0-cp38-….whl`; a folder is called `NAME-VERSION`."""
        found = re.match(r"([A-Za-z_.]+(?:_[a-z]+)*)-([0-9A-Za-z.]+?)(?:-|\.tar\.gz$|$)", self.path.name)
        if found is None:
            raise SystemExit(f"{self.path.name}: no name and version in it; call a folder NAME-VERSION")
        return found[1].lower().replace("-", "_"), found[2]

    def text(self, ending: str) -> str | None:
        """The file whose path ends so; None where there is none."""
        for name, read in self.files.items():
            if name == ending or name.endswith("/" + ending):
                return read().decode("utf-8", "replace")
        return None

    def under(self, part: str, suffix: str = ".py") -> dict[str, str]:
        """All files with this in their path, as text."""
        return {
            name: read().decode("utf-8", "replace")
            for name, read in self.files.items()
            if part in name and name.endswith(suffix)
        }
