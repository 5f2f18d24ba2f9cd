"""How much of the prompts at the load came from the prefix cache."""

from stepline.model.measure.counters import over_recording
from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import sign


@sign
def cached_share(picture: Picture) -> tuple[float | None, str]:
    """Cached share of the prompt tokens at the load, and its instrument: client, log, counters."""
    load = picture.load
    for level in picture.run.levels:
        if level.cached_share is not None and load is not None and level.concurrency == load.concurrency:
            return level.cached_share, "client"
    for plateau in reversed(picture.plateaus):
        total = plateau.prefill_tokens + plateau.cached_tokens
        if load is not None and plateau.running == load.running and total:
            return plateau.cached_tokens / total, "prefill lines at this load"
    counted = over_recording(picture.run)
    if counted is not None and counted.prefill_tokens is not None and counted.cached_tokens is not None:
        total_tokens = counted.prefill_tokens + counted.cached_tokens
        if total_tokens:
            return counted.cached_tokens / total_tokens, "the engine's counters"
    if counted is not None and counted.prefix_hit_share is not None:
        return counted.prefix_hit_share, "the engine's counters"
    return None, ""
