"""What the tensor pipe should read in this step, so that nobody takes a low number for a fault."""

from stepline import units
from stepline.model.activity import tensor_activity
from stepline.model.picture import Picture


def tensor_statement(picture: Picture) -> str | None:
    """Measured tensor-pipe activity beside what tile-padded FLOPs predict; None without model, GPU, step or samples."""
    target, step = picture.target, picture.step
    measured = _measured(picture)
    if target.architecture is None or target.gpu is None or step is None or measured is None:
        return None
    expected = tensor_activity(
        target.architecture, target.gpu, target.layout, batch=step.running, step_ms=step.measured_ms
    )
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
