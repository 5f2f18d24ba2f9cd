"""Levels that a recording drove at another context than its own: they tell how the step grows with context.

They are no part of the load: its rate, its law in the batch and its gain are of one context.
"""

import msgspec

from stepline.evidence.load import LoadLevel
from stepline.evidence.run import Run
from stepline.model.measure.windows import OWN_TOOL, DecodeWindow, Windows
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    other_context = Threshold(
        2.0,
        "times",
        why="Prompts longer or shorter by this factor are another context; those of one plan differ "
        "by a few tokens at most.",
    )
    edge_s = Threshold(
        1.0,
        "s",
        why="A log's lines carry whole seconds.",
        source="SGLang's and vLLM's log formats",
    )


def probe_levels(run: Run) -> tuple[LoadLevel, ...]:
    """The levels whose prompts are not those of the recording's first level, which is the load that was asked for.

    Levels of other tools are what somebody measured on purpose, so none of theirs is a probe.
    """
    own = [
        level
        for level in run.levels
        if level.tool == OWN_TOOL and level.start_s is not None and level.input_tokens
    ]
    if not own:
        return ()
    asked = min(own, key=lambda level: level.start_s or 0.0).input_tokens or 0.0
    return tuple(level for level in own if not _near(level.input_tokens or 0.0, asked))


def without(run: Run, probes: tuple[LoadLevel, ...]) -> Run:
    """The run without those levels and without the scrapes taken meanwhile."""
    if not probes:
        return run
    return msgspec.structs.replace(
        run,
        levels=tuple(level for level in run.levels if level not in probes),
        metrics=tuple(scrape for scrape in run.metrics if not _inside(scrape.time_s, probes)),
    )


def split(windows: Windows, probes: tuple[LoadLevel, ...]) -> tuple[Windows, tuple[DecodeWindow, ...]]:
    """The windows outside the probes, and the usable ones inside."""
    if not probes:
        return windows, ()
    own, probed = windows, []
    for name in ("valid", "unverified", "bounded"):
        kept = tuple(w for w in getattr(windows, name) if not _inside(w.time_s, probes))
        own = msgspec.structs.replace(own, **{name: kept})
    probed = [window for window in windows.usable if _inside(window.time_s, probes)]
    return own, tuple(probed)


def _near(one: float, other: float) -> bool:
    return other / T.other_context < one < T.other_context * other


def _inside(time_s: float | None, levels: tuple[LoadLevel, ...]) -> bool:
    return time_s is not None and any(
        level.start_s is not None
        and level.end_s is not None
        and level.start_s <= time_s <= level.end_s + T.edge_s
        for level in levels
    )
