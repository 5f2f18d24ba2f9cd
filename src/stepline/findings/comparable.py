"""Whether two sides may be compared: a known difference of load or machine is refused, an unknown one doubted."""

import re
from collections.abc import Sequence

from stepline import units
from stepline.errors import UsageError
from stepline.findings.diagnosis import Doubt
from stepline.model.picture.picture import Picture
from stepline.model.roofline.architecture import Architecture
from stepline.model.signs.cached_prompts import cached_share
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    same_cache = Threshold(
        0.1,
        "cached share of the prompts",
        why="A larger difference between two sides is refused: prefill takes up to a third of a "
        "sound server's time, so a tenth of it moves rates by the 3 % that are of interest.",
    )


def check_comparable(befores: Sequence[Picture], afters: Sequence[Picture]) -> tuple[Doubt, ...]:
    """The doubts of a comparison that may be made.

    Raises:
        UsageError: when the sides are known to differ in model, weights, GPU or cache state.
    """
    doubts: list[Doubt] = []
    before = befores[0]
    for after in (*befores[1:], *afters):
        doubts += _model(before, after)
        doubts += _gpu(before, after)
        doubts += _cache(before, after)
    return tuple(dict.fromkeys(doubts))


def _model(before: Picture, after: Picture) -> list[Doubt]:
    ours, theirs = before.target, after.target
    if ours.architecture is not None and theirs.architecture is not None:
        if _shape(ours.architecture) != _shape(theirs.architecture):
            names = (ours.model or ours.architecture.name, theirs.model or theirs.architecture.name)
            raise refused(f"the model is {names[0]} before and {names[1]} after")
    elif ours.model is not None and theirs.model is not None:
        if not _same_model(_last(ours.model), _last(theirs.model)):
            raise refused(f"the model is {ours.model} before and {theirs.model} after")
    else:
        return [Doubt(topic="model", text="the model is not known on both sides")]
    told = None not in (before.run.server.dummy_weights, after.run.server.dummy_weights)
    if told and ours.dummy_weights != theirs.dummy_weights:
        raise refused("one side serves dummy weights and the other real ones")
    return []


def _gpu(before: Picture, after: Picture) -> list[Doubt]:
    ours, theirs = before.target, after.target
    if ours.gpu is None or theirs.gpu is None:
        return [Doubt(topic="gpu", text="the GPU is not known on both sides")]
    if ours.gpu.name != theirs.gpu.name:
        raise refused(f"the GPU is {ours.gpu.name} before and {theirs.gpu.name} after")
    if ours.layout.gpus != theirs.layout.gpus:
        text = f"{ours.layout.gpus} GPUs before and {theirs.layout.gpus} after: the gain is not per GPU"
        return [Doubt(topic="gpu", text=text)]
    return []


def _cache(before: Picture, after: Picture) -> list[Doubt]:
    """Prompts from the cache are no work: a load half cached is another load, unless the cache is what was changed."""
    if not (before.run.levels and after.run.levels):
        return []
    shares = [cached_share(picture)[0] for picture in (before, after)]
    if shares[0] is None or shares[1] is None:
        return [
            Doubt(
                topic="cache", text="how much of the prompts the prefix cache held is not known on both sides"
            )
        ]
    if abs(shares[0] - shares[1]) <= T.same_cache:
        return []
    before_share, after_share = (units.percent(share or 0.0) for share in shares)
    told = f"{before_share} of the prompt tokens came from the prefix cache before and {after_share} after"
    settings = [picture.run.server.prefix_cache for picture in (before, after)]
    values = [None if setting is None else setting.value for setting in settings]
    if None not in values and values[0] != values[1]:
        return [Doubt(topic="cache", text=f"{told}, since the cache itself was switched")]
    raise refused(told)


def _shape(model: Architecture) -> tuple[object, ...]:
    """What makes a model itself: name and quantisation may differ, the latter being a lever."""
    return (model.model_type, model.hidden, model.layers, model.heads, model.vocab, model.params)


def refused(difference: str) -> UsageError:
    """One sentence that names what makes two sides unlike."""
    return UsageError(f"not comparable: {difference}")


def _same_model(one: str, other: str) -> bool:
    """True for one model, or two checkpoints of it that differ in how their weights are kept."""
    return _KEPT.sub("", one) == _KEPT.sub("", other)


_KEPT = re.compile(
    r"(?:[-_.](?:fp8|fp4|nvfp4|mxfp4|bf16|fp16|int4|int8|awq|gptq|w4a16|w8a8|w4a8|w8a16|4bit|8bit|quantized|dynamic"
    r"|block|marlin|autoround|modelopt))+$"
)
"""What makers of quantised checkpoints put behind a model's name."""


def _last(model: str) -> str:
    return model.rstrip("/").rpartition("/")[2].lower()
