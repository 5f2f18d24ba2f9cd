"""A folder of runs to the ledger of levers tried."""

from pathlib import Path

from stepline.errors import UnreadableEvidence, UsageError
from stepline.findings.history import History
from stepline.findings.ledger import ledger
from stepline.model.picture.picture import Picture
from stepline.tasks.picture import picture_of
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
    visible = sorted(child for child in root.iterdir() if not child.name.startswith("."))
    places = [(child.name, [str(child)]) for child in visible if child.is_dir()]
    loose = [str(child) for child in visible if child.is_file()]
    if loose:
        places.append(("loose files", loose))
    runs: list[tuple[str, Picture]] = []
    passed: list[str] = []
    for name, paths in places:
        try:
            runs.append((name, picture_of(paths, setup, progress)))
        except UnreadableEvidence as error:
            passed.append(f"{name}: {error}")
    if not runs:
        raise UnreadableEvidence(passed[0] if passed else f"{folder}: the folder is empty")
    return ledger(runs, passed)
