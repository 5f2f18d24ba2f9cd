"""Where a calibration of this machine is kept, and reading one."""

import os
from pathlib import Path

import msgspec

from stepline.errors import UnreadableEvidence, UsageError
from stepline.evidence.calibration import SCHEMA_VERSION, Calibration

SHOWN = "~/.config/stepline/calibration.json"


def place() -> Path:
    """`$XDG_CONFIG_HOME/stepline/calibration.json`, by default under `~/.config`."""
    root = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(root) / "stepline" / "calibration.json"


def make_folder(file: Path) -> None:
    """Make the folder that the kept calibration lies in.

    Raises:
        UsageError: it cannot be made.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{file.parent} cannot be made ({error.strerror}): give --out FILE") from None


def load(named: str | Path | None) -> Calibration | None:
    """The calibration of the file that was named, else the one kept for this machine, else None.

    Raises:
        UnreadableEvidence: the file is not there or no calibration.
    """
    file = place() if named is None else Path(named)
    if named is None and not file.is_file():
        return None
    try:
        calibration = msgspec.json.decode(file.read_bytes(), type=Calibration)
    except (OSError, msgspec.DecodeError) as error:
        raise UnreadableEvidence(
            f"{file} is no calibration ({error}); `stepline lab calibrate --out FILE` writes one"
        ) from None
    if calibration.schema_version != SCHEMA_VERSION:
        raise UnreadableEvidence(
            f"{file} is a calibration of schema {calibration.schema_version}, this version reads {SCHEMA_VERSION}: "
            "measure again with `stepline lab calibrate`"
        )
    return calibration
