"""L104 cold-start.

What it means:
    The measurement holds the server's first requests: kernels are compiled, caches filled and graphs warmed in it.

Why it costs:
    Nothing in production; it makes a benchmark read slow, most of all first-token times of the first level.

Evidence needed:
    First-token times of several levels, or compile lines after the server was ready.

How it decides:
    The lightest load waits over five times longer for its first token than a heavier one, or kernels were compiled
    while requests ran. It never costs decode rate, so it ranks below every cause that does.

What would prove it wrong:
    The same level measured again reads the same.

What to try:
    Send a few requests of each shape first, then measure.

References:
    vllm-project/vllm issue 43009
"""

from stepline import units
from stepline.findings.outcome import CannotTell, Clear, Fired, Observation, Outcome, Proof, Rival, Rule, Try
from stepline.model.picture import Picture

SLOWER = 5.0
"""A lightly loaded server answers first; five times slower than under more load is beyond any scheduling noise (the
four H200 captures read 0.04 to 0.7)."""


def check(picture: Picture) -> Outcome:
    """Decide whether warm-up is inside the measurement."""
    compiled = [event for event in picture.run.events if event.kind == "jit-compile"]
    ready = next((event for event in picture.run.events if event.kind == "ready"), None)
    during = [event for event in compiled if ready is not None and event.seq > ready.seq]
    timed = [level for level in picture.levels if level.ttft_ms is not None]
    slow = None
    for index, first in enumerate(timed[:-1]):
        later = min(
            (level.ttft_ms for level in timed[index + 1 :] if level.ttft_ms is not None), default=None
        )
        if later is not None and first.ttft_ms is not None and first.ttft_ms > SLOWER * later:
            slow = (first, later)
            break
    if slow is None and not during:
        if len(timed) < 2 and not picture.run.decodes:
            return CannotTell("first-token times of two levels", "measure a light and a heavier load")
        return Clear(
            "no level waits longer for first tokens than a heavier one, and nothing was compiled while serving"
        )
    evidence = []
    if slow is not None:
        evidence.append(
            Observation(
                f"first tokens took {units.ms(slow[0].ttft_ms or 0)} at C = {slow[0].concurrency:g}, but "
                f"{units.ms(slow[1])} at a heavier load",
                slow[0].origin,
            )
        )
    evidence += [
        Observation("kernels were compiled while requests ran", event.origin) for event in during[:1]
    ]
    return Fired(
        status="suspected",
        headline="the server was still warming up while it was measured",
        evidence=tuple(evidence),
        rivals=(Rival("L102 prefix-cache-distortion", "the same level again, with fresh prompts"),),
        tries=(Try("send a few requests of each shape before measuring", "seconds"),),
        proof=Proof("measure the same level a second time", 30.0),
    )


RULE = Rule("L104", "cold-start", "0.1.0", check)
