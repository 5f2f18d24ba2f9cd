"""The faults that can be planted, each in three strengths, and the look-alikes that cost nothing."""

from collections.abc import Callable

import msgspec

from stepline.errors import UsageError
from stepline.lab.sim.settings import Settings
from stepline.lab.sim.world import Disturbance

Start = tuple[Settings, Disturbance]
STRENGTHS = (1, 2, 3)


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Something wrong on purpose; `plant` changes how the engine starts and how long things take."""

    name: str
    """On the command line: a rule's code, or a word for a look-alike."""
    expected: str
    """The rule that should be named first; empty where nothing may be confirmed."""
    what: str
    plant: Callable[[Start, int], Start]


def _healthy(start: Start, strength: int) -> Start:  # noqa: ARG001 - of one form with the others
    return start


def _cap(start: Start, strength: int) -> Start:
    most = (16, 8, 4)[strength - 1]
    return msgspec.structs.replace(start[0], max_running=most, max_running_asked=most), start[1]


def _graphs_off(start: Start, strength: int) -> Start:
    # Strength is how slow the host launches: nothing, 30 % or 60 % slower than the calibrated one.
    settings, disturbance = start
    slower = (0.0, 6.0, 12.0)[strength - 1]
    return msgspec.structs.replace(settings, graph_sizes=()), msgspec.structs.replace(
        disturbance, host_ms=disturbance.host_ms + slower
    )


def _graph_ceiling(start: Start, strength: int) -> Start:
    most = (24, 16, 8)[strength - 1]
    sizes = tuple(size for size in start[0].graph_sizes if size <= most)
    return msgspec.structs.replace(start[0], graph_sizes=sizes), start[1]


FAULTS: tuple[Fault, ...] = (
    Fault(name="healthy", expected="", what="nothing planted", plant=_healthy),
    Fault(name="S201", expected="S201", what="at most 16, 8 or 4 requests run", plant=_cap),
    Fault(
        name="H302",
        expected="H302",
        what="no decode graphs; the host 0, 6 or 12 ms slower besides",
        plant=_graphs_off,
    ),
    Fault(name="H303", expected="H303", what="decode graphs end at batch 24, 16 or 8", plant=_graph_ceiling),
)


def find_fault(text: str) -> tuple[Fault, int]:
    """The fault and strength of `CODE[:strength]`; strength 2 where none is given.

    Raises:
        UsageError: No fault has that name, or the strength is not 1, 2 or 3.
    """
    name, _, strength = text.partition(":")
    fault = next((fault for fault in FAULTS if fault.name.lower() == name.lower()), None)
    if fault is None:
        raise UsageError(f"no fault is called {name!r}; `stepline lab faults` lists them")
    if strength not in ("", *map(str, STRENGTHS)):
        raise UsageError(f"a fault's strength is 1, 2 or 3, not {strength!r}")
    return fault, int(strength or 2)
