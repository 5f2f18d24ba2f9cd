"""Thresholds that several rules share with one meaning."""

from stepline.threshold import Threshold


class T:
    """The shared table."""

    worth = Threshold(
        0.1,
        "share of the load's time, or of the step",
        why="What costs less is no finding, at most a note: noise and rival causes reach it.",
    )
    healthy_gap = Threshold(
        2.5,
        "times the floor",
        why="A step up to it is called healthy.",
        source="sound steps on the H200 take 1.6 to 1.8 times the floor; half of 2,102 public measurements take "
        "under 3.4 times (with prefill inside)",
    )
    off_law = Threshold(
        1.1,
        "times the covered step law",
        why="A step without a graph that takes longer is off the law of those with graphs.",
        source="windows of one level spread by under 2 % on graph steps (H200)",
    )
    same_load = Threshold(
        0.1,
        "share of the offered load",
        why="What differs by no more is one load: streams come and go at a level's edges.",
        source="that moved offered over running by up to 10 % on undisturbed levels of the H200 captures",
    )
    prompt_over_floor = Threshold(
        1.7,
        "times the prompt's FLOP floor",
        why="What a prompt takes on a healthy server.",
        source="256-token prompts on an H200",
    )
    confidence = Threshold(
        0.95,
        "confidence",
        why="Of every interval, of a step law and of a ratio.",
        source="convention",
    )
