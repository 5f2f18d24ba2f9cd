"""How much of the prompts at the load came from the prefix cache."""

from stepline.model.picture import Picture


def cached_share(picture: Picture) -> tuple[float | None, str]:
    """Cached share of the prompt tokens at the load, and its instrument: client, log, counters since start."""
    load = picture.load
    for level in picture.run.levels:
        if level.cached_share is not None and load is not None and level.concurrency == load.concurrency:
            return level.cached_share, "client"
    for plateau in reversed(picture.plateaus):
        total = plateau.prefill_tokens + plateau.cached_tokens
        if load is not None and plateau.running == load.running and total:
            return plateau.cached_tokens / total, "prefill lines at this load"
    for scrape in picture.run.metrics:
        if scrape.prefill_tokens is not None and scrape.cached_tokens is not None:
            total_tokens = scrape.prefill_tokens + scrape.cached_tokens
            if total_tokens:
                return scrape.cached_tokens / total_tokens, "counters since start"
    return None, ""
