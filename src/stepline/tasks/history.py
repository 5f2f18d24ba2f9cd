"""A folder of runs to the ledger of levers tried."""

from collections.abc import Sequence
from pathlib import Path, PurePath

from stepline.errors import UsageError
from stepline.evidence.run import Run
from stepline.findings.history import History
from stepline.findings.ledger import ledger
from stepline.tasks.picture import pictures_of, read
from stepline.tasks.progress import SILENT, Progress
from stepline.tasks.setup import UNTOLD, SetupRequest, check


def history_of(folder: str, setup: SetupRequest = UNTOLD, progress: Progress = SILENT) -> History:
    """The ledger of a folder.

    Raises:
        UsageError: when it is no folder.
        UnreadableEvidence: when nothing in it could be read.
    """
    check(setup, progress)
    root = Path(folder)
    if not root.is_dir():
        raise UsageError(f"{folder}: no folder; give one whose folders are runs")
    evidence = read(folder, setup, progress)
    pictures = pictures_of(evidence, setup, progress)
    runs = list(zip(_names(evidence.runs), pictures, strict=True))
    passed = [file.note or file.path for file in evidence.passed]
    return ledger(runs, [*passed, *(f"{one.path}: {one.reason}" for one in evidence.ungrouped)])


def _names(runs: Sequence[Run]) -> list[str]:
    """The folder of each run where each has one of its own, as people keep a campaign; else the runs' ids."""
    folders = [{PurePath(file.path).parts[0] for file in run.files if file.kind} for run in runs]
    alone = [next(iter(own)) if len(own) == 1 else "" for own in folders]
    in_folders = all("/" in file.path for run in runs for file in run.files if file.kind)
    if in_folders and len(set(alone)) == len(runs) and all(alone):
        return alone
    return [run.id for run in runs]
