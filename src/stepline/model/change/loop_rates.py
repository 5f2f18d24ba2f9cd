"""The rate of the closed loop with other steps or another cost of a request, as an interval."""

import msgspec

from stepline.model.change.estimate import Estimate
from stepline.model.measure.closed_loop import ClosedLoop, decode_only
from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import sign


@sign
def loop_at_load(picture: Picture) -> ClosedLoop | None:
    """The measured closed loop, endless decoding where no client level was measured, None without a true step."""
    if picture.loop is not None:
        return picture.loop
    if picture.step is None or picture.step.upper_bound:
        return None
    return decode_only(picture.step.running, picture.step.measured_ms, picture.step.tokens_per_step)


def rates(loop: ClosedLoop, step_ms: Estimate, other_ms: Estimate | None = None) -> Estimate:
    """Rate in tok/s with these steps and this cost of a request beside them; the longest of both make the low end.

    Without `other_ms` a request costs what it costs now.
    """
    other = Estimate.exact(loop.other_ms_per_request) if other_ms is None else other_ms
    middle, fast, slow = (
        msgspec.structs.replace(loop, step_ms=step, other_ms_per_request=cost).tok_s
        for step, cost in zip(step_ms, other, strict=True)
    )
    return Estimate(middle, slow, fast)


def told(picture: Picture, binds_next: str) -> str:
    """What binds next, with a warning where only decode steps were measured."""
    if picture.loop is not None:
        return binds_next
    return f"{binds_next}; prefill is not in these figures, since nothing tells what a request costs beside decode"
