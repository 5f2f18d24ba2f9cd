"""Evidence to a diagnosis."""

from stepline.evidence.run import Run
from stepline.findings.diagnose import diagnose as diagnose_picture
from stepline.findings.diagnosis import Diagnosis
from stepline.tasks.picture import Evidence, Paths, picture_of
from stepline.tasks.progress import SILENT, Progress
from stepline.tasks.setup import UNTOLD, SetupRequest, check


def diagnose(
    evidence: Evidence | Run | Paths, setup: SetupRequest = UNTOLD, progress: Progress = SILENT
) -> Diagnosis:
    """The diagnosis of files and folders, or of what was read from them.

    Raises:
        SteplineError: the setup cannot be right, a path does not exist, or nothing could be read.
    """
    check(setup, progress)
    return diagnose_picture(picture_of(evidence, setup, progress))
