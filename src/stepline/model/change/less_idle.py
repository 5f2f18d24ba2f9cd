"""What the rate would be if the GPU worked more of the time for this load: host, other prompts, neighbours."""

from stepline.model.change.estimate import Estimate
from stepline.model.change.gain import Gain, gain
from stepline.model.change.loop_rates import rates
from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import sign
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    regained = Threshold(
        0.5,
        "share of the GPU's idle time",
        why="What goes with the cause of the host's delay; the host binds again soon after.",
        source="88 % on the SGLang twins with and without overlap scheduling, 38 and 26 % on vLLM's "
        "(tests/data/h200-sglang-2, h200-lab)",
    )
    regained_least = Threshold(
        0.25,
        "share of the GPU's idle time",
        why="The same at the slow end.",
        source="the smaller of vLLM's twins, 26 %",
    )
    overlapped = Threshold(
        0.88,
        "share of the GPU's idle time",
        why="The same where the engine says that host and GPU take turns, and the host's part is "
        "short enough to hide behind the GPU's.",
        source="the SGLang twins, of which the first idled 25 % of the time, the others 46 % and more",
    )
    hides = Threshold(
        1 / 3,
        "idle share of the GPU",
        why="Up to here the host's turn is at most half of the GPU's.",
        source="arithmetic",
    )
    counted = Threshold(
        0.02,
        "busy share",
        why="How far a counted one may lie above the truth.",
        source="healthy servers read up to 98 to 99 % and samples of one load differ by as much",
    )
    busy_least = Threshold(
        0.5,
        "share of the counted busy share",
        why="Bound on the fast end: counters are not wrong by more than half.",
    )


@sign
def takes_turns(picture: Picture) -> bool:
    """True when the engine says that it does not overlap the host's work with the GPU's."""
    overlap = picture.run.server.overlap_schedule
    return overlap is not None and overlap.value is False


def without_host(picture: Picture, busy_share: float) -> Gain | None:
    """The rate when the GPU no longer waits for the host as it does, at best not at all. None without a rate."""
    rate = picture.rate_tok_s
    if rate is None or busy_share <= 0:
        return None
    idle = 1 - busy_share
    hides = takes_turns(picture) and idle <= T.hides
    central, least = (T.overlapped, T.regained) if hides else (T.regained, T.regained_least)
    return Gain(
        tok_s=rate / (1 - central * idle),
        low=rate / (1 - least * idle),
        high=rate / max(T.busy_least * busy_share, busy_share - T.counted),
        binds_next="the GPU's own work",
    )


def with_other_cost(picture: Picture, other_ms: float, least_ms: float, *, taken: float = 0.0) -> Gain | None:
    """The rate when a request costs `other_ms` beside decode steps (at best `least_ms`, at worst halfway there).

    `taken` is the share of the time that other clients' prompts need at least; like the load's own they ordinarily
    take `other_ms` over `least_ms` as long. None without a closed loop.
    """
    loop = picture.loop
    if loop is None:
        return None
    others = Estimate(other_ms, least_ms, (loop.other_ms_per_request + other_ms) / 2)
    alone = rates(loop, Estimate.exact(loop.step_ms), others)
    middle = alone.middle * max(0.0, 1 - taken * other_ms / least_ms)
    return gain(Estimate(middle, min(middle, alone.low), alone.high * (1 - taken)), "decode steps")


def without_neighbour(picture: Picture, busy: float) -> Gain | None:
    """The rate once a process is gone that alone keeps the GPU busy for the share `busy` of the time.

    Kernels of two processes take turns in equal slices, and the neighbour's work is stretched as the server's is: it
    takes busy / (1 + busy) of the time. It takes `busy` at the fast end, where its work cannot wait, and half
    of the middle where steps leave gaps that it fills.
    """
    rate = picture.rate_tok_s
    if rate is None or busy >= 1:
        return None
    return Gain(
        tok_s=rate * (1 + busy),
        low=rate * (1 + busy / 2),
        high=rate / (1 - busy),
        binds_next="decode steps",
    )
