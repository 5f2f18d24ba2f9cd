"""Calibrations that come with stepline: what GPUs reached in the measurements of `stepline lab calibrate`."""

import functools
from pathlib import Path

import msgspec

from stepline.errors import UnknownFact
from stepline.evidence.calibration import Calibration
from stepline.facts.hardware import find_gpu

_FOLDER = Path(__file__).with_name("calibrations")


@functools.cache
def shipped_calibration(gpu: str) -> Calibration | None:
    """The calibration of the GPU of that name in `hardware.toml`; None where nobody measured one."""
    for file in sorted(_FOLDER.glob("*.json")):
        calibration = msgspec.json.decode(file.read_bytes(), type=Calibration)
        if measured_gpu(calibration) == gpu:
            return calibration
    return None


def measured_gpu(calibration: Calibration) -> str:
    """The name in `hardware.toml` of the GPU that was measured; the driver's own where no data file knows it."""
    try:
        return find_gpu(calibration.machine.gpu).name
    except UnknownFact:
        return calibration.machine.gpu
