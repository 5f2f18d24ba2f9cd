"""What the tensor pipe should read in this step, so that nobody takes a low number for a fault."""

from typing import NamedTuple

from stepline import units
from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import sign
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.tensor_activity import Activity, tensor_activity


class TensorReading(NamedTuple):
    """Measured share of the tensor pipe beside what tile-padded FLOPs of the step predict."""

    measured: float
    expected: Activity
    narrowest: float
    """Peak of the GPU's fastest type over bf16's: where kernels use that type the true share is smaller by it."""


@sign
def tensor_reading(picture: Picture) -> TensorReading | None:
    """Both sides; None without model, GPU, step or samples."""
    target, step = picture.target, picture.step
    measured = _measured(picture)
    if target.architecture is None or target.gpu is None or step is None or measured is None:
        return None
    expected = tensor_activity(
        Deployment(target.architecture, target.gpu, target.layout),
        batch=step.running,
        step_ms=step.measured_ms,
    )
    fastest = max(peak for math, peak in target.gpu.peak_flops.items() if math != "fp32")
    return TensorReading(measured, expected, fastest / target.gpu.peak("bf16"))


@sign
def tensor_statement(picture: Picture) -> str | None:
    """Measured tensor-pipe activity beside the prediction in a sentence; None where one of them is missing."""
    reading, step = tensor_reading(picture), picture.step
    if reading is None or step is None:
        return None
    measured, expected = reading.measured, reading.expected
    verdict = (
        "proves nothing by itself: decode at this batch cannot read much more"
        if measured <= expected.high
        else "is more than decode alone explains: prefill is inside the samples"
    )
    low, high = units.percent(expected.low), units.percent(min(1.0, expected.high))
    span = low if low == high else f"{low} to {high}"
    return (
        f"the tensor pipe reads {units.percent(measured)}; a step of {units.ms(step.measured_ms)} at {step.running:g} "
        f"should read {span} (tile-padded FLOPs), so that number {verdict}"
    )


def _measured(picture: Picture) -> float | None:
    if picture.gpu_use is not None:
        return picture.gpu_use.tensor_busy
    stated = [
        s.tensor_busy for s in picture.run.gpu_samples if s.tensor_busy is not None and s.time_s is None
    ]
    return max(stated) if stated else None
