"""What removing a cause brings: the rate of the closed loop afterwards."""

import msgspec

from stepline.model.change.estimate import Estimate


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """The closed-loop rate after the cause is removed, with its interval and what limits then."""

    tok_s: float
    """Rate after."""
    low: float
    """Lower end of its interval."""
    high: float
    """Upper end."""
    binds_next: str
    """What limits then."""


def gain(rate: Estimate, binds_next: str) -> Gain:
    """A rate in tok/s as the gain of a finding."""
    return Gain(tok_s=rate.middle, low=rate.low, high=rate.high, binds_next=binds_next)
