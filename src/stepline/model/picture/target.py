"""Who is under diagnosis: model, GPU, layout and context, from the evidence first and the command line second."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from stepline.errors import UnknownFact
from stepline.evidence.origin import Sourced
from stepline.evidence.run import Run
from stepline.facts.catalogue import find_model
from stepline.facts.hardware import Gpu, find_gpu
from stepline.model.picture.picture import Setup, Target
from stepline.model.roofline.architecture import Architecture, parse_config
from stepline.model.roofline.layout import Layout


def find_target(run: Run, setup: Setup) -> tuple[Target, str | None]:
    """The server, and why there can be no floor (None when model and GPU are known)."""
    server = run.server
    architecture, no_model = _architecture(run, setup)
    gpu, no_gpu = _gpu(_said(server.gpu), *_traced_gpus(run), setup.gpu)
    missing = [reason for reason in (no_model, no_gpu) if reason]
    configured, source = _configured_context(run, setup)
    layout = Layout(
        tp=_said(server.tp) or setup.tp or _traced_tp(run, setup),
        ep=_said(server.ep) or setup.ep or 1,
        dp=_said(server.dp) or setup.dp or 1,
        pp=_said(server.pp) or setup.pp or 1,
        dp_attention=bool(_said(server.dp_attention)),
    )
    target = Target(
        engine=_said(server.engine),
        version=_said(server.version),
        model=_said(server.model) or setup.model,
        architecture=architecture,
        gpu=gpu,
        layout=layout,
        configured_context=configured,
        configured_context_source=source,
        dummy_weights=bool(_said(server.dummy_weights)),
        kv_dtype=_said(server.kv_dtype) or "auto",
        calibration=setup.calibration,
    )
    return target, "; ".join(missing) or None


def _architecture(run: Run, setup: Setup) -> tuple[Architecture | None, str | None]:
    config: Mapping[str, Any] | None = _said(run.model_config)
    name = setup.model or _said(run.server.model)
    if config is None and name is None:
        return None, "the model is not known: give its config.json or --model"
    try:
        if config is not None:
            return parse_config(config, name=name or ""), None
        known = find_model(name)
        architecture = parse_config(known.config, name=name)
    except UnknownFact as error:
        return None, str(error)
    if known.stands_for:
        told = (*architecture.not_counted, known.stands_for)
        architecture = msgspec.structs.replace(architecture, not_counted=told)
    return architecture, None


def _traced_tp(run: Run, setup: Setup) -> int:
    """Tensor parallelism by the ranks of a trace that exchange data, where nobody tells the layout; else 1."""
    server = run.server
    spread = (server.ep, server.dp, server.pp, setup.ep, setup.dp, setup.pp)
    if run.trace is None or any(spread):
        return 1
    ranks = run.trace.ranks
    if not any(group.component_ms("communication") for rank in ranks for group in rank.groups):
        return 1
    numbered = {rank.rank for rank in ranks if rank.rank is not None}
    return max([1, len(numbered), *(rank.world_size or 1 for rank in ranks)])


def _gpu(*names: str | None) -> tuple[Gpu | None, str | None]:
    """The first of the names that a data file knows: what the evidence says before what the user says."""
    reasons: list[str] = []
    for name in dict.fromkeys(names):
        try:
            if name is not None:
                return find_gpu(name), None
        except UnknownFact as error:
            reasons.append(str(error))
    return None, "; ".join(reasons) or "the GPU is not known: give --gpu"


def _traced_gpus(run: Run) -> Iterator[str]:
    """Names of the devices that the traces ran on."""
    for rank in run.trace.ranks if run.trace is not None else ():
        if rank.device is not None and rank.device.name:
            yield rank.device.name


def _configured_context(run: Run, setup: Setup) -> tuple[int | None, str | None]:
    """The context the engine prepares for: its setting, else the model's maximum, which engines default to."""
    stated = run.server.context_length
    if stated is not None:
        return stated.value, str(stated.origin)
    config = run.model_config
    if config is not None and setup.context_length is None:
        nested = config.value.get("text_config") or config.value
        maximum = nested.get("max_position_embeddings")
        if isinstance(maximum, int):
            return maximum, f"{config.origin.file}#max_position_embeddings, the engines' default"
    return None, None


def _said(value: Sourced[Any] | None) -> Any:
    return None if value is None else value.value
