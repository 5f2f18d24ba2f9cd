"""Writes a file that a command line names."""

import os
from pathlib import Path

from stepline.errors import UsageError


def write_text(path: str | Path, content: str) -> None:
    """Write a text file.

    Raises:
        UsageError: when it cannot be written.
    """
    try:
        Path(path).write_text(content, "utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror}); choose another file") from None


def check_writable(path: str | Path) -> None:
    """Refuse a file that cannot be written before the work that would fill it.

    Raises:
        UsageError: its folder is not there or does not let us write, or it is a folder itself.
    """
    folder = Path(path).parent
    if Path(path).is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"{path}: cannot be written; choose another file in a folder that is there")
