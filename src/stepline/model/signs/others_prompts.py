"""Prompts that other clients send beside the load: work that must be done, and no fault."""

import statistics

from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import sign
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    over_floor = Threshold(
        2.0,
        "times the prompt's FLOP floor",
        why="Prefill time up to it is ordinary.",
        source="256-token prompts took 1.7 times on a healthy H200 server",
    )
    others = Threshold(
        0.5,
        "prompt tokens over a request's own",
        why="Further ones a finished request from which others send prompts.",
    )
    min_s = Threshold(
        4.0,
        "s",
        why="The log's clock has whole seconds; over fewer of them a rate of prefills says nothing.",
    )


@sign
def others_prompts(picture: Picture) -> tuple[float, float]:
    """(tokens, how many) of the prompts that other clients send for each request of the load that finishes.

    Each must be prefilled and is no fault. A prompt that was cut into chunks counts whole, since how it was cut may be
    the fault. Where the log leaves open how many prompts they are, as one they have the least floor.
    (0, 0) where they send none, or without a closed loop and a prompt's length.
    """
    loop, load = picture.loop, picture.load
    if loop is None or load is None or load.input_tokens is None:
        return 0.0, 0.0
    stated = load.input_tokens
    finished_s = loop.tok_s / loop.output_tokens
    plateaus = [p for p in picture.plateaus if p.running == load.running and p.prefill_prompts]
    if plateaus and plateaus[-1].time is not None and plateaus[-1].time.duration_s >= T.min_s:
        plateau, seconds = plateaus[-1], plateaus[-1].time.duration_s
        tokens = plateau.prefill_tokens / seconds / finished_s - stated
        number = plateau.prefill_prompts / seconds / finished_s - 1
        number = number if number > 0 else 1.0
    else:
        rates = [
            line.prefill_tok_s
            for line in picture.run.decodes
            if line.prefill_tok_s is not None and line.running * load.ranks == load.running
        ]
        tokens = statistics.median(rates) / finished_s - stated if rates else 0.0
        number = 1.0
    # A level's edges hold some of its own prompts more than it finished.
    return (tokens / number, number) if tokens > T.others * stated else (0.0, 0.0)
