"""The least and the typical decode step of one model on one layout, over running batches."""

import msgspec

from stepline.evidence.calibration import Calibration
from stepline.facts.hardware import Gpu
from stepline.model.roofline.decode_floor import Floor, decode_floor
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.knee import knee_batch
from stepline.model.roofline.kv_capacity import capacity_sequences, kv_bytes_per_token, weight_bytes_per_gpu
from stepline.model.roofline.layout import Layout
from stepline.model.roofline.typical import Typical, typical_step

SCHEMA_VERSION = 1


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """The floors of one batch."""

    batch: int
    strict: Floor
    expected: Floor
    typical: Typical | None
    """What healthy servers reach, where the GPU's class is calibrated."""
    tok_s_per_user: float
    """At the expected floor."""
    tok_s_total: float


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What the steps work on."""

    batches: tuple[int, ...]
    """Running sequences of a rank, one step each."""
    context_tokens: int
    """Live tokens of a sequence."""
    context_length: int | None = None
    """Configured longest context in tokens, for work that follows it; None leaves that out."""
    draft_tokens: int = 0
    """Speculative tokens a step."""
    accept_length: float = 1.0
    """Tokens that a step yields."""


class Roofline(msgspec.Struct, frozen=True, kw_only=True):
    """Everything `stepline roofline` says about one model on one layout."""

    schema_version: int = SCHEMA_VERSION
    model: str
    params: float
    active_params: float
    checkpoint_bytes: float
    gpu: Gpu
    layout: Layout
    context_tokens: int
    context_length: int | None
    weight_bytes_per_gpu: float
    kv_bytes_per_token: float
    capacity_sequences: float
    knee_batch: float | None
    points: tuple[Point, ...]
    not_counted: tuple[str, ...]


def roofline(deployment: Deployment, load: Load, calibration: Calibration | None) -> Roofline:
    """The floors of every batch, and what memory holds beside the weights.

    Raises:
        UnknownFact: the quantisation is not known or the layout is impossible.
    """
    architecture, layout = deployment.architecture, deployment.layout
    points = tuple(_point(deployment, load, batch=batch, calibration=calibration) for batch in load.batches)
    return Roofline(
        model=architecture.name,
        params=architecture.params,
        active_params=architecture.active_params,
        checkpoint_bytes=architecture.checkpoint_bytes,
        gpu=deployment.gpu,
        layout=layout,
        context_tokens=load.context_tokens,
        context_length=load.context_length,
        weight_bytes_per_gpu=weight_bytes_per_gpu(architecture, layout),
        kv_bytes_per_token=kv_bytes_per_token(architecture, layout=layout, kv_dtype=deployment.kv_dtype),
        capacity_sequences=capacity_sequences(deployment, context_tokens=load.context_tokens),
        knee_batch=knee_batch(deployment, context_tokens=load.context_tokens),
        points=points,
        not_counted=points[0].expected.not_counted,
    )


def _point(deployment: Deployment, load: Load, *, batch: int, calibration: Calibration | None) -> Point:
    strict, expected = (
        decode_floor(
            deployment,
            batch=batch,
            context_tokens=load.context_tokens,
            routing=routing,
            capacity_context_tokens=load.context_length,
            draft_tokens=load.draft_tokens,
            accept_length=load.accept_length,
        )
        for routing in ("strict", "expected")
    )
    per_user = 1e3 / expected.ms_per_token
    typical = typical_step(
        deployment, batch=batch, context_tokens=load.context_tokens, calibration=calibration
    )
    return Point(
        batch=batch,
        strict=strict,
        expected=expected,
        typical=None if load.draft_tokens else typical,
        tok_s_per_user=per_user,
        tok_s_total=per_user * batch * deployment.layout.dp,
    )
