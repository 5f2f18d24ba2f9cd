"""Causes seen in a decode trace that also slow prefill, by an amount that decode steps do not tell."""

from typing import Literal

from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import sign
from stepline.model.signs.communication import late_rank_share, slow_exchange_share
from stepline.model.signs.kernel_paths import wide_products

Stretch = Literal["slow exchange", "late rank", "wide products"]


@sign
def stretches_prompts(picture: Picture) -> Stretch | None:
    """The cause that slows prefill besides decode steps; None where no trace shows one.

    Prompts move far more data between GPUs than a step, and prefill is bound by products where a step is bound by
    reads, so the step's own stretch is no measure of theirs.
    """
    traced = picture.traced
    if traced is None:
        return None
    if slow_exchange_share(picture) >= SHARED.worth:
        return "slow exchange"
    if late_rank_share(picture) >= SHARED.worth:
        return "late rank"
    if wide_products(traced.group).wide_ms >= SHARED.worth * traced.step_ms:
        return "wide products"
    return None
