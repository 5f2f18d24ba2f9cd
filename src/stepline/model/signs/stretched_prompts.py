"""What a trace shows of decode steps that lengthens prompts too, by an amount that decode steps do not tell."""

from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import sign
from stepline.model.signs.communication import late_rank_share, slow_exchange_share
from stepline.model.signs.kernel_paths import wide_products


@sign
def stretches_prompts(picture: Picture) -> str | None:
    """The cause that makes prompts slow besides steps, with its code; None where no trace shows one.

    Prompts move far more data between GPUs than a step and are bound by products where a step is bound by reads, so
    the step's own stretch is no measure of theirs.
    """
    traced = picture.traced
    if traced is None:
        return None
    if slow_exchange_share(picture) >= SHARED.worth:
        return "slow exchange between GPUs (C501)"
    if late_rank_share(picture) >= SHARED.worth:
        return "a late rank (C502)"
    if wide_products(traced.group).wide_ms >= SHARED.worth * traced.step_ms:
        return "products in 32 bits (K405)"
    return None
