"""L102 prefix-cache-distortion.

What it means:
    The measured load read much of its prompts from the prefix cache, so its rates and first-token times hold only for
    traffic that repeats itself as much.

Why it costs:
    Nothing in production. It makes a server look faster than it is for fresh prompts, and bends curves over concurrency
    when later levels repeat the prompts of earlier ones.

Evidence needed:
    Client levels, and cached prompt tokens: in prefill lines, in counters, or as the client reports them.

How it decides:
    Over 30 % of the prompt tokens at the load came from the cache. Suspected, since only the person who made the load
    knows whether real traffic repeats itself as much.

What would prove it wrong:
    The same load with fresh prompts (or a flushed cache) reads the same.

What to try:
    Unique prompts, another seed for each level, or a flush between levels.

References:
    vllm-project/vllm issues 54227 and 52884
"""

from stepline import units
from stepline.findings.outcome import CannotTell, Clear, Fired, Observation, Outcome, Proof, Rival, Rule, Try
from stepline.model.picture.picture import Picture
from stepline.model.signs.cached_prompts import cached_share
from stepline.threshold import Threshold


class T:
    """Thresholds of this rule."""

    shared = Threshold(
        0.3,
        "cached share of the prompts",
        why="Prefill is shortened beyond what unique prompts allow.",
        source="unique prompts hit 0 to 0.1 % (chat templates and the begin-of-text token), chat "
        "traffic of one system prompt commonly half",
    )


def check(picture: Picture) -> Outcome:
    """Decide whether the measured load lives off the prefix cache."""
    if not picture.run.levels:
        return Clear("no client level that a cache could distort")
    share, where = cached_share(picture)
    if share is None:
        return CannotTell("cached prompt tokens", "read #cached-token in prefill lines, or record /metrics")
    if share < T.shared:
        return Clear(f"{units.percent(share)} of the prompt tokens came from the prefix cache")
    return Fired(
        status="suspected",
        headline=f"{units.percent(share)} of the prompt tokens came from the prefix cache: fresh ones are slower",
        evidence=(Observation(f"cached prompt tokens: {units.percent(share)} ({where})"),),
        rivals=(Rival("traffic that truly repeats itself", "whether real prompts share as much"),),
        tries=(
            Try(
                "measure with unique prompts, or flush the cache between levels",
                "the cache of other users is lost",
            ),
        ),
        proof=Proof("the same load with fresh prompts", 30.0),
    )


RULE = Rule("L102", "prefix-cache-distortion", "0.1.0", check)
