"""What several runs say together, as data: experiments, repeats, and pairs from which nothing follows."""

from typing import Literal

import msgspec


class Span(msgspec.Struct, frozen=True):
    """A 95 % interval."""

    low: float
    """Lower end."""
    high: float
    """Upper end."""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """The effect at one level by one instrument."""

    at: str
    """The level, as both sides measured it."""
    measure: str
    """`rate` or `time per token`."""
    instrument: str
    """What measured both sides."""
    before: float
    """Value before, in `unit`."""
    after: float
    """Value after."""
    unit: str
    """`tok/s` or `ms`."""
    speedup: float
    """Speed after over speed before: above 1 is faster."""
    interval: Span
    """95 % of the speedup: repeats by their spread, one measurement a side by the noise of its instrument."""
    verdict: str
    """better, worse, same or inconclusive."""


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A cause that the experiment decides."""

    code: str
    """Code of the rule."""
    name: str
    """Name of the cause."""
    says: Literal["confirmed", "ruled out"]
    """What the experiment says of it."""
    by: str
    """The number that decides it."""


class RunsCompared(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment: runs that differ in one setting and share a load."""

    runs: tuple[str, ...]
    """Ids of all its runs, those before first."""
    before: tuple[str, ...]
    """Ids of the runs with the value before; several are repeats."""
    after: tuple[str, ...]
    """Ids of the runs with the value after."""
    setting: str
    """The one thing that differs: a start argument, an environment variable, a fact of the server."""
    value_before: str | None
    """None where the run does not say: the engine's default."""
    value_after: str | None
    """As `value_before`."""
    effect: Compared
    """At the heaviest level that both measured."""
    levels: tuple[Compared, ...]
    """At every level that both measured, the lightest first."""
    covers: str
    """What the intervals cover, and what they take on trust."""
    answers: tuple[Answered, ...]
    """Causes that it decides."""
    sentence: str
    """Setting, effect and interval in a sentence."""


class NotComparable(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs of which no difference can be put down to one setting."""

    runs: tuple[str, str]
    """Their ids."""
    differs: tuple[str, ...]
    """What differs, as `setting before → after`; empty where nothing that the evidence shows does."""
    reason: str
    """Why nothing follows from them."""


class Repeated(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that differ in nothing that the evidence shows and share a load."""

    runs: tuple[str, ...]
    """Their ids."""


class UngroupedView(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was read and joined to no run."""

    path: str
    """The file."""
    reason: str
    """Why it joined none."""


class ReadTogether(msgspec.Struct, frozen=True, kw_only=True):
    """What was read beside the runs' own files."""

    stepline: str
    """Version that made it."""
    shared: tuple[str, ...]
    """Files that belong to several runs, such as the model's config."""
    ungrouped: tuple[UngroupedView, ...]
    """Files that fit no run, or several equally."""
    passed_over: tuple[str, ...]
    """Files of no known kind, with the reason."""
