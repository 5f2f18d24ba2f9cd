"""What a decode step costs at least, from config, GPU and layout alone."""

import msgspec

from stepline.errors import UsageError
from stepline.evidence.calibration import Calibration
from stepline.facts.calibrations import measured_gpu
from stepline.facts.hardware import Gpu, find_gpu
from stepline.model.roofline import table
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.layout import Layout
from stepline.model.roofline.table import Roofline
from stepline.tasks.calibration_file import load
from stepline.tasks.model_file import load_architecture


class RooflineRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A model on a layout of GPUs, and the load of its steps."""

    model: str
    """A bundled name, hub id, config.json or model folder."""
    gpu: str
    """As drivers or people call it, `h200`."""
    tp: int = 1
    ep: int = 1
    """GPUs that hold whole experts."""
    dp: int = 1
    pp: int = 1
    dp_attention: bool = False
    """The dp ranks share the tp GPUs."""
    batches: tuple[int, ...] = (1, 16, 64)
    """Running sequences of a rank, one step each."""
    context_tokens: int = 8192
    """Live tokens of a sequence."""
    context_length: int | None = None
    """Configured longest context in tokens, for work that follows it; None leaves that out."""
    kv_dtype: str = "auto"
    """`fp8`, `bf16` or `fp4`; `auto` is the model's."""
    draft_tokens: int = 0
    """Speculative tokens a step."""
    accept_length: float = 1.0
    """Tokens that a step yields."""
    calibration: str | None = None
    """File that `stepline lab calibrate` wrote; None takes the one kept for this machine, if there."""


def roofline(request: RooflineRequest) -> Roofline:
    """The floors that are asked for.

    Raises:
        UsageError: a batch or context is no positive number, or the calibration is of another GPU.
        UnknownFact: the model, GPU, quantisation or layout is not known or impossible.
    """
    if min(request.batches, default=0) < 1:
        words = ",".join(map(str, request.batches))
        raise UsageError(f"--batch {words!r} holds a number below 1")
    if request.context_tokens < 1:
        raise UsageError(f"--context is {request.context_tokens}; a sequence attends to 1 token or more")
    if request.accept_length < 1:
        raise UsageError(f"--accept-length is {request.accept_length}; a step yields 1 token or more")
    architecture, gpu = load_architecture(request.model), find_gpu(request.gpu)
    layout = Layout(
        tp=request.tp, ep=request.ep, dp=request.dp, pp=request.pp, dp_attention=request.dp_attention
    )
    work = table.Load(
        batches=request.batches,
        context_tokens=request.context_tokens,
        context_length=request.context_length,
        draft_tokens=request.draft_tokens,
        accept_length=request.accept_length,
    )
    deployment = Deployment(architecture, gpu, layout, request.kv_dtype)
    return table.roofline(deployment, work, _calibration(request.calibration, gpu))


def _calibration(named: str | None, gpu: Gpu) -> Calibration | None:
    calibration = load(named)
    if named is not None and calibration is not None and measured_gpu(calibration) != gpu.name:
        raise UsageError(f"{named} is of {measured_gpu(calibration)}, not of {gpu.name}")
    return calibration
