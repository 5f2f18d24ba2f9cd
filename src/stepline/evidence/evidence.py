"""Evidence: what was read, told apart into runs. A run is one start of one server with the loads put on it."""

import msgspec

from stepline.evidence.run import EvidenceFile, ReadingDoubt, Run


class Ungrouped(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was read and joined to no run, and why."""

    path: str
    reason: str


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Everything under the paths given. No number of one run is a number of another."""

    runs: tuple[Run, ...] = ()
    """Each with an id of its own, in order of time where all tell it, else as read."""
    shared: tuple[str, ...] = ()
    """Files that belong to every run they fit, such as the one model's config.json."""
    ungrouped: tuple[Ungrouped, ...] = ()
    passed: tuple[EvidenceFile, ...] = ()
    """Files of no known kind, with the reason."""
    doubts: tuple[ReadingDoubt, ...] = ()
    """About the evidence as a whole, such as lines of two servers that cannot be told apart."""
    targets: tuple[str, ...] = ()
    """The paths whose traces are condensed into runs; empty where there are none.

    They are read again only where a configured context is given afterwards that the evidence does not have: which
    kernels follow the context is decided while a trace is condensed.
    """
