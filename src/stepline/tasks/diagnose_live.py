"""Record a running server and diagnose the recording."""

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from stepline.errors import Interrupted
from stepline.findings.diagnose import diagnose
from stepline.findings.diagnosis import Diagnosis
from stepline.findings.several import diagnosis_of
from stepline.plan.change import change_for
from stepline.tasks.by_hand import by_hand
from stepline.tasks.live import LiveRequest
from stepline.tasks.picture import picture_of
from stepline.tasks.progress import SILENT, Progress
from stepline.tasks.record import kept, record


class Diagnosed(NamedTuple):
    """A live server's diagnosis, and how to prove its first finding by hand."""

    diagnosis: Diagnosis
    next_steps: list[str]


def diagnose_server(
    url: str, request: LiveRequest, progress: Progress = SILENT, *, save: Path | None = None
) -> Diagnosed:
    """Record into `save`, or into a folder that is removed afterwards, and diagnose.

    Raises:
        SteplineError: nobody answers, or the request cannot be right.
        Interrupted: Ctrl-C after something was measured, which is kept with or without `save`.
    """
    folder = Path(tempfile.mkdtemp(prefix="stepline-")) if save is None else save
    scratch = folder if save is None else None
    try:
        with kept(folder):
            recorded = record(url, folder, request, progress)
            picture = picture_of(folder, request.setup, progress)
            found = diagnose(picture)
        return Diagnosed(
            diagnosis_of(picture, found), by_hand(url, request, recorded, change_for(picture, found), save)
        )
    except Interrupted:
        scratch = None
        raise
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
