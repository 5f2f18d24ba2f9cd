"""The step of a model with experts: each further request brings fewer experts that no other has called.

Of E experts a token calls k, so a share 1 - k/E of them stays untouched by one token and (1 - k/E)^N by N. A step
that reads the touched ones takes t(N) = full - missing · untouched^N, which no line through small batches foretells.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    batches = Threshold(3, "batches", why="Three numbers are fitted.", source="arithmetic")


LEAST, MOST, EDGE = 0.3, 0.9999, 1e-3
"""`untouched` by one token: from models that call two experts of three to thousands of experts; a best value next to
the upper end is none."""


class Saturation(msgspec.Struct, frozen=True, kw_only=True):
    """t(N) = full_ms - missing_ms · untouched^N."""

    full_ms: float
    missing_ms: float
    untouched: float
    residual_ms: float
    """Root mean square distance of the points; next to 0 for three, which it always passes."""

    def step_ms(self, running: float) -> float:
        """Predicted step at a running batch."""
        return self.full_ms - self.missing_ms * float(self.untouched**running)


def saturation(points: Sequence[tuple[float, float]]) -> Saturation | None:
    """Least squares over (running, step in ms); None for fewer than three batches or steps that do not level off."""
    if len({running for running, _ in points}) < T.batches:
        return None
    from scipy.optimize import minimize_scalar  # noqa: PLC0415  # a quarter of a second, for few models only

    running, steps = np.array(points).T

    def of(untouched: float) -> Saturation:
        design = np.stack([np.ones_like(running), -(untouched**running)], axis=1)
        (full, missing), *_ = np.linalg.lstsq(design, steps, rcond=None)
        residual = float(np.sqrt(np.mean((design @ [full, missing] - steps) ** 2)))
        return Saturation(
            full_ms=float(full), missing_ms=float(missing), untouched=untouched, residual_ms=residual
        )

    best = of(float(minimize_scalar(lambda q: of(q).residual_ms, bounds=(LEAST, MOST), method="bounded").x))
    return best if best.missing_ms > 0 and best.untouched < MOST - EDGE else None
