"""The front end: one process that takes requests in and hands tokens out one after the other."""

from stepline.lab.sim.calibration import Calibration
from stepline.lab.sim.world import Disturbance


class FrontEnd:
    """When requests reach the scheduler and tokens the client; it is busy while it hands out."""

    def __init__(self, calibration: Calibration, disturbance: Disturbance) -> None:
        self.in_s = calibration.front_in_ms / 1e3
        self._token_s = (calibration.front_us_per_token + disturbance.front_us_per_token) / 1e6
        self._free_s = 0.0

    def leaves(self, end_s: float, tokens: int) -> float:
        """When `tokens` of a forward that ended at `end_s` are out."""
        self._free_s = max(self._free_s, end_s) + tokens * self._token_s
        return self._free_s
