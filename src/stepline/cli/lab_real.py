"""How `stepline lab run` has a real engine recorded: as `stepline record` records any server."""

from pathlib import Path

import msgspec

from stepline.cli.progress import Progress
from stepline.lab.real.matrix import Load
from stepline.tasks.live import LiveRequest, seconds
from stepline.tasks.record import record as record_server


def record(url: str, folder: Path, log: Path, load: Load) -> None:
    """Record the server at `url` into `folder`; progress goes to stderr.

    Raises:
        SteplineError: nobody answers, or the load cannot be right.
    """
    progress = Progress(quiet=False)
    progress.tell(f"== {folder.stem}")
    told = msgspec.structs.asdict(load)
    budget_s = seconds(told.pop("budget"))
    record_server(url, folder, LiveRequest(**told, budget_s=budget_s, log=log, load=True), progress)
