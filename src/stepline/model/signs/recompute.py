"""What computing retracted requests again takes, where no counter of prefilled tokens tells: by the closed loop."""

from stepline.errors import UnknownFact
from stepline.model.measure.preemption import retractions
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import sign
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.prefill_floor import prefill_floor_ms


@sign
def prompt_floor_ms(picture: Picture, tokens: float | None) -> float | None:
    """Least time of one prompt of `tokens`; None without length, model or GPU, or in a layout that cannot be."""
    target = picture.target
    if tokens is None or target.architecture is None or target.gpu is None:
        return None
    server = Deployment(target.architecture, target.gpu, target.layout)
    try:
        return prefill_floor_ms(server, tokens, routing="expected")
    except UnknownFact:
        return None


@sign
def own_prompt_floor_ms(picture: Picture) -> float | None:
    """Prefill floor in ms of the load's mean prompt; None if length, model or GPU is unknown."""
    return prompt_floor_ms(picture, None if picture.load is None else picture.load.input_tokens)


@sign
def repeated_by_loop(picture: Picture) -> float:
    """Share of the time in which retracted requests are probably computed again; 0 where nothing shows that.

    It is the time beside decode steps that ordinary prompts leave over, and no more than the retractions a finished
    request, each with its whole context, can take.
    """
    loop, load, seen = picture.loop, picture.load, retractions(picture.run)
    if loop is None or load is None or seen is None or picture.context is None:
        return 0.0
    prompt_ms = own_prompt_floor_ms(picture)
    again_ms = prompt_floor_ms(picture, picture.context.tokens)
    finished = sum(level.requests or 0 for level in picture.run.levels)
    if prompt_ms is None or again_ms is None or not finished or not loop.other_ms_per_request:
        return 0.0
    left_ms = loop.other_ms_per_request - SHARED.prompt_over_floor * prompt_ms
    most_ms = SHARED.prompt_over_floor * again_ms * seen.requests / finished
    return (1 - loop.decode_share) * max(0.0, min(left_ms, most_ms)) / loop.other_ms_per_request
