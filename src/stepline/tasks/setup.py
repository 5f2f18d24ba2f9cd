"""What a user may say about the server where the evidence does not say it."""

from pathlib import Path
from typing import TypedDict

import msgspec

from stepline.errors import UnknownFact, UsageError
from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.model.picture.picture import Setup
from stepline.tasks.calibration_file import load
from stepline.tasks.progress import SILENT, Progress

SIZES = ("tp", "ep", "dp", "pp", "context_length")


class SetupRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Each is used only where the evidence does not already say it; None leaves it open."""

    model: str | Path | None = None
    """A config.json, a model folder, or the name of a bundled model."""
    gpu: str | None = None
    """As drivers or people call it, `h200`."""
    tp: int | None = None
    ep: int | None = None
    dp: int | None = None
    pp: int | None = None
    context_length: int | None = None
    """Configured longest context in tokens."""
    calibration: str | Path | None = None
    """File that `stepline lab calibrate` wrote; None takes the one kept for this machine, if there."""


UNTOLD = SetupRequest()


class Settings(TypedDict, total=False):
    """The fields of a `SetupRequest` as keyword arguments of the Python API; what is left out is None."""

    model: str | Path | None
    gpu: str | None
    tp: int | None
    ep: int | None
    dp: int | None
    pp: int | None
    context_length: int | None
    calibration: str | Path | None


def check(request: SetupRequest, progress: Progress = SILENT) -> None:
    """Refuse a setup that cannot be right before anything is read.

    A GPU or model that no data file knows costs the floor, not the diagnosis: one line says so, with the nearest names.

    Raises:
        UsageError: when a size is not above zero.
    """
    model = request.model if request.model is not None and not Path(request.model).exists() else None
    for name, find in ((request.gpu, find_gpu), (model, find_model)):
        try:
            if name is not None:
                find(str(name))
        except UnknownFact as error:
            progress.tell(f"{error}; going on without it")
    for name in SIZES:
        size = getattr(request, name)
        if size is not None and size < 1:
            raise UsageError(f"--{name.replace('_', '-')} {size}: give a number above zero")


def setup_of(request: SetupRequest) -> Setup:
    """The setup that the model works with, with the calibration read.

    Raises:
        UnreadableEvidence: the calibration is not there or no calibration.
    """
    return Setup(
        model=None if request.model is None else str(request.model),
        gpu=request.gpu,
        tp=request.tp,
        ep=request.ep,
        dp=request.dp,
        pp=request.pp,
        context_length=request.context_length,
        calibration=load(request.calibration),
    )
