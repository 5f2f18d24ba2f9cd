"""What is compared: the findings in order, and the numbers that were understood."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

import stepline
from stepline.errors import UnreadableEvidence
from stepline.evidence.run import Run


def answer(folder: Path) -> tuple[Any, ...]:
    """Findings in order, then levels, steps and trials without where they were read."""
    try:
        evidence = stepline.read([folder])
    except UnreadableEvidence:
        return ("unreadable",)
    findings = tuple((one.code, one.status) for one in stepline.diagnose(evidence).findings)
    return findings, _numbers(evidence.runs)


def _numbers(runs: Sequence[Run]) -> tuple[Any, ...]:
    return tuple(
        tuple(sorted(_plain(record) for run in runs for record in getattr(run, kind)))
        for kind in ("levels", "step_rows", "levers", "gpu_samples")
    )


def _plain(record: Any) -> str:
    fields = {
        name: float(f"{value:.9g}")
        if isinstance(value, int | float) and not isinstance(value, bool)
        else value
        for name, value in msgspec.structs.asdict(record).items()
        if name not in ("origin", "lever", "arm", "value_before", "condition") and value is not None
    }
    return repr(sorted(fields.items(), key=lambda item: item[0]))
