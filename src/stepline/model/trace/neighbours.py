"""For whom unnamed kernels work, by the layers they stand in: found without annotations, so inferred.

Norms cut a step into halves of layers, and in each half one owner has kernels with names of its own: attention with its
cache writes, experts with their routing. A kernel that recurs in halves of one owner is the owner's where it stands
between two of the owner's kernels, or where the half shows the owner's work without the kernel that does it (a cache
write and no attention). Everything else in a half may be a projection, and stays unnamed.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stepline.evidence.trace_arrays import Column
from stepline.threshold import Threshold

OWNERS = {
    "attention": "attention",
    "kv-write": "attention",
    "indexer": "indexer",
    "linear-attention": "linear-attention",
    "moe": "moe",
    "sampling": "sampling",
}
"""Components whose named kernels show what the half of a layer around them does."""
CUT = "norm"


class T:
    """Thresholds of this module."""

    least = Threshold(
        8, "launches", why="A kernel of a layer recurs in each; one seen less often is of none."
    )
    a_step = Threshold(
        4,
        "launches a step",
        why="Models have more layers, and what a step does once or twice is no layer's work.",
    )
    share = Threshold(
        0.8,
        "share of the launches",
        why="So many must say the same: first and last layers are cut by what surrounds them.",
    )
    longest = Threshold(64, "kernels", why="A longer run between two norms is no half of a layer.")


def owners(
    name: Column, component: NDArray[np.int64], components: Sequence[str], lane: Column, start_ns: Column
) -> dict[int, str]:
    """The owner of every name of `unattributed` rows that the structure around it settles.

    Args:
        name: of each row.
        component: of each row, an index into `components`.
        components: their names.
        lane: rows of one lane (a step on one stream) follow each other.
        start_ns: when each row began.
    """
    order = np.lexsort((start_ns, lane))
    labels, lanes, names = component[order], lane[order], name[order]
    if CUT not in components or "unattributed" not in components:
        return {}
    begins = (labels == components.index(CUT)) | np.concatenate([[True], lanes[1:] != lanes[:-1]])
    half, first = np.cumsum(begins) - 1, np.flatnonzero(begins)
    kinds = list(dict.fromkeys(OWNERS.values()))
    owner = np.array([kinds.index(OWNERS[one]) if one in OWNERS else -1 for one in components])[labels]
    bits = np.where(owner >= 0, 1 << np.maximum(owner, 0), 0)
    own = np.array([one in kinds for one in components])[labels]
    around = np.bitwise_or.reduceat(bits, first)
    does = np.bitwise_or.reduceat(np.where(own, bits, 0), first)
    fits = np.diff(np.append(first, len(order))) <= T.longest
    alone = fits & (around > 0) & (around & (around - 1) == 0)
    between = _between(owner, half)
    said = np.where(alone[half] & (between | (does[half] == 0)), around[half], 0)
    nobody = labels == components.index("unattributed")
    found: dict[int, str] = {}
    for one in np.unique(names[nobody]).tolist():
        rows = (names == one) & nobody
        values, counts = np.unique(said[rows], return_counts=True)
        total, best = int(rows.sum()), int(values[counts.argmax()])
        enough = total >= max(T.least, T.a_step * len(np.unique(lanes[rows])))
        if enough and best and counts.max() >= T.share * total:
            found[one] = kinds[best.bit_length() - 1]
    return found


def _between(owner: NDArray[np.int64], half: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the nearest rows of an owner before and behind each row are in its half."""
    at = np.arange(len(owner))
    before = np.maximum.accumulate(np.where(owner >= 0, at, -1))
    behind = np.minimum.accumulate(np.where(owner >= 0, at, len(owner))[::-1])[::-1]
    known = (before >= 0) & (behind < len(owner))
    return np.asarray(known & (half[before] == half) & (half[np.minimum(behind, len(owner) - 1)] == half))
