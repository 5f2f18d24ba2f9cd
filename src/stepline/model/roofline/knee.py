"""The batch at which a decode step turns from bandwidth-bound to compute-bound."""

from stepline.model.roofline.decode_floor import decode_floor
from stepline.model.roofline.deployment import Deployment

LARGEST_BATCH = 1 << 17
"""Beyond any server's batch: no knee below it is no knee."""


def knee_batch(deployment: Deployment, *, context_tokens: float) -> float | None:
    """Return the batch where the expected step's FLOPs take as long as its bytes, or None.

    None means that cache reads keep every step bandwidth-bound, as each sequence brings its own.
    """

    def compute_bound(batch: float) -> bool:
        floor = decode_floor(deployment, batch=batch, context_tokens=context_tokens, routing="expected")
        return floor.compute_ms >= floor.bandwidth_ms

    if not compute_bound(LARGEST_BATCH):
        return None
    low, high = 0.0, float(LARGEST_BATCH)
    while high - low > max(0.5, low * 1e-3):
        middle = (low + high) / 2
        low, high = (low, middle) if compute_bound(middle) else (middle, high)
    return high
