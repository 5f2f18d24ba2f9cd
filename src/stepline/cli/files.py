"""Writes a file that a command line names."""

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
