"""Evidence to a diagnosis."""

from stepline.evidence.evidence import Evidence
from stepline.evidence.run import Run
from stepline.findings.diagnosis import Diagnosis
from stepline.findings.several import diagnose_runs
from stepline.tasks.picture import Paths, pictures_of, told_by
from stepline.tasks.progress import SILENT, Progress
from stepline.tasks.setup import UNTOLD, SetupRequest, check


def diagnose(
    evidence: Evidence | Run | Paths,
    setup: SetupRequest = UNTOLD,
    progress: Progress = SILENT,
    *,
    run: str | None = None,
) -> Diagnosis:
    """The diagnosis of files and folders, or of what was read from them, run by run; `run` picks the one to speak of.

    Raises:
        SteplineError: the setup cannot be right, a path does not exist, nothing could be read, or no run is called so.
    """
    check(setup, progress)
    told = told_by(evidence, setup, progress)
    return diagnose_runs(pictures_of(told, setup, progress), told, run)
