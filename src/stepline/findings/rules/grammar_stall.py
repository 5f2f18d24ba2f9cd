"""H305 grammar-stall.

This rule makes notes only: the one public A/B behind it is confounded, and no capture with this fault exists here.

What it means:
    Requests with structured output wait for their grammar to be compiled, or each step waits for the host to fill the
    masks of allowed tokens.

Why it costs:
    Requests in the grammar queue hold no place in the batch; masks filled on the host, one request after the other,
    lengthen every step in which such a request decodes.

Evidence needed:
    The engine's count of requests that wait for a grammar, scraped under load; or an A/B of the same requests with and
    without structured output.

How it decides:
    A note when on average at least a tenth of the engine's requests wait for a grammar. Masks can only be told by an
    A/B: the step with and without structured output.

What would prove it wrong:
    The same load without structured output decodes as slowly.

What to try:
    Fewer distinct schemas, so that compiled grammars are found in the cache; another grammar backend; batched masks.

References:
    vllm-project/vllm issue 49013 (each guided step allocated a mask anew); ddalcu/mlx-serve issue 380 (60 times by
    first report, 1.76 times in a clean A/B)
"""

import statistics

from stepline import units
from stepline.findings.outcome import CannotTell, Clear, Fired, Observation, Outcome, Proof, Rival, Rule, Try
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture


def check(picture: Picture) -> Outcome:
    """Decide whether requests wait for their grammar."""
    scrapes = [s for s in picture.run.metrics if s.grammar_queued is not None and s.running is not None]
    loaded = [s for s in scrapes if (s.running or 0.0) + (s.grammar_queued or 0.0) > 0]
    if not loaded:
        return CannotTell(
            "requests that wait for a grammar, under load",
            "scrape /metrics under load; or measure the same requests without structured output",
        )
    waiting = statistics.fmean(s.grammar_queued or 0.0 for s in loaded)
    inside = statistics.fmean((s.running or 0.0) + (s.queued or 0.0) for s in loaded) + waiting
    if waiting < SHARED.worth * inside:
        return Clear(f"{waiting:.2g} of {inside:.3g} requests wait for a grammar ({len(loaded)} scrapes)")
    return Fired(
        status="suspected",
        headline=f"{units.percent(waiting / inside)} of the requests wait for their grammar to be compiled",
        evidence=(
            Observation(
                f"{waiting:.3g} of {inside:.3g} requests wait for a grammar, mean of {len(loaded)} scrapes",
                loaded[0].origin,
            ),
        ),
        rivals=(Rival("H306 process-contention", "the host's CPU use while grammars are compiled"),),
        tries=(Try("use fewer distinct schemas, or another grammar backend", "a restart for the latter"),),
        proof=Proof("measure the same load without structured output, and compare both", 60.0),
    )


RULE = Rule("H305", "grammar-stall", "0.1.0", check, proven=False)
