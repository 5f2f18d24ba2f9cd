"""stepline finds why an LLM server decodes slower than its hardware allows, and proves it.

import stepline
run = stepline.read(["capture/"])
answer = stepline.diagnose(run, gpu="h200")
print(answer.verdict, [finding.code for finding in answer.findings])
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepline.evidence.run import Run
    from stepline.findings.diagnosis import Diagnosis

__all__ = ["__version__", "diagnose", "read"]
__version__ = "0.1.0"

# Everything else is imported when called: `import stepline` and `stepline --help` stay quick.


def read(paths: Iterable[str | Path]) -> "Run":
    """Read files and folders of evidence, recognised by content.

    Raises:
        stepline.errors.UsageError: a path does not exist.
        stepline.errors.UnreadableEvidence: nothing could be read.
    """
    from stepline.sources.read import read as read_paths  # noqa: PLC0415

    return read_paths(paths)


def diagnose(
    run: "Run",
    *,
    model: str | None = None,
    gpu: str | None = None,
    tp: int | None = None,
    context_length: int | None = None,
) -> "Diagnosis":
    """Diagnose a run; the settings are used only where the evidence does not say."""
    from stepline.findings.diagnose import diagnose as diagnose_picture  # noqa: PLC0415
    from stepline.model.assess import assess  # noqa: PLC0415
    from stepline.model.picture import Setup  # noqa: PLC0415

    return diagnose_picture(assess(run, Setup(model=model, gpu=gpu, tp=tp, context_length=context_length)))
