"""Which stretch of a log is the load: the heaviest one that lasted, whether or not a step can be read in it."""

from collections.abc import Sequence
from typing import NamedTuple

from stepline.model.measure.timeline import Plateau
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    lines = Threshold(
        3,
        "decode lines",
        why="Between three lines lie two whole windows of one load; fewer are a ramp between two levels.",
    )
    share = Threshold(
        0.005,
        "share of the log's decode lines",
        why="A shorter stretch above everything else is a burst that came and went, not the load of the server.",
    )
    alike = Threshold(
        0.9,
        "times the most offered",
        why="Stretches that offer about as much are one load seen again: the longest shows it best.",
    )


class Operating(NamedTuple):
    """The plateau of the load, and the heaviest stretch above it that did not last."""

    plateau: Plateau
    burst: Plateau | None


def operating_plateau(logged: Sequence[Plateau]) -> Operating | None:
    """The heaviest sustained plateau; where none lasted, the heaviest of all. None for an empty log."""
    if not logged:
        return None
    least = max(T.lines, T.share * sum(plateau.decode_lines for plateau in logged))
    lasted = [plateau for plateau in logged if plateau.decode_lines >= least] or list(logged)
    most = max(plateau.offered for plateau in lasted)
    alike = [plateau for plateau in lasted if plateau.offered >= T.alike * most]
    chosen = max(alike, key=lambda plateau: (plateau.decode_lines, plateau.offered))
    above = [plateau for plateau in logged if T.alike * plateau.offered > most and plateau.decode_lines > 1]
    return Operating(chosen, max(above, key=lambda plateau: plateau.offered, default=None))
