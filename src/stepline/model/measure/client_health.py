"""Whether the client itself could keep up, from what it measured about itself."""

from stepline import units
from stepline.evidence.load import ClientHealth
from stepline.model.measure.thresholds import T as SHARED
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    full_core = Threshold(
        0.9,
        "share of one core",
        why="The client's busiest process cannot read faster: an event loop is one thread.",
    )


def overtaxed(health: ClientHealth | None) -> str | None:
    """Why the client's times are its own and not the server's; None when it kept up, or did not measure itself."""
    if health is None:
        return None
    if health.late_share >= SHARED.worth:
        return (
            f"the client was late for {units.percent(health.late_share)} of the time "
            f"(its loop's timers up to {units.ms(health.lag_p99_ms)} at the 99th percentile)"
        )
    if health.cpu_share >= T.full_core:
        return f"the client took {units.percent(health.cpu_share)} of a core, all that one process has"
    return None


def more_processes(health: ClientHealth | None, cores: int, load: float) -> int | None:
    """How many processes the client should use instead; None where more of them would not help.

    They help where one filled a core, not where it was kept from one: then the machine has none to spare, and they
    would take it from a server on it.

    Args:
        health: of the level just driven.
        cores: those that the client may run on.
        load: processes that want a core, this client's included (the system's load average).
    """
    if health is None or health.cpu_share < T.full_core or cores - load < health.processes:
        return None
    return 2 * health.processes
