"""H304 frontend-bound.

What it means:
    Tokens leave the engine faster than they reach the client: tokenizer, detokenizer or the HTTP server holds them up.

Why it costs:
    One process hands out the tokens of the whole batch. Once it needs longer for them than the engine for a step,
    answers end late, a closed loop sends its next requests late, and the engine runs with a smaller batch or idles.

Evidence needed:
    One load from both sides: the client's open requests and time per token, and the engine's running batch, queue and
    rate over the same time (decode lines or gauges). The client's own lateness, which rules out L101.

How it decides:
    Fired when a token takes at least 1.3 times as long to the client as in the engine (prompts between the steps
    counted on both sides), or when a fifth of the requests that the client holds open, and two at least, neither run
    nor wait in the engine. Suspected, since a slow network looks the same; an A/B of the front end alone confirms.

What would prove it wrong:
    A client on the server's machine, or one that takes token ids without text, sees the same times.

What to try:
    A fast tokenizer; several API server or detokenizer processes; a longer stream interval; text left out
    (SGLang `--skip-tokenizer-init`) where the caller can decode ids.

References:
    sgl-project/sglang issues 23393, 12972 and 8031; Little, "A Proof for the Queuing Formula L = λW", Operations
    Research 9(3), 1961
"""

from stepline import units
from stepline.findings.outcome import (
    CannotTell,
    Clear,
    Fired,
    Observation,
    Outcome,
    Proof,
    Rival,
    Rule,
    RuledOut,
    Try,
    recovered,
)
from stepline.model.change.gain import Gain
from stepline.model.picture.picture import Picture
from stepline.model.signs.front_end import BothSides, both_sides


def check(picture: Picture) -> Outcome:
    """Decide whether the way between engine and client is what is slow."""
    sides = both_sides(picture)
    if not sides:
        return CannotTell(
            "one load from both sides: the client's time per token, and the engine's rate meanwhile",
            "drive the load with `stepline diagnose URL` and give the server's log",
        )
    heaviest = sides[-1]
    if heaviest.tokens_late or heaviest.requests_missing:
        return _fired(picture, heaviest)
    if heaviest.late is None:
        return Clear(f"the engine runs or has waiting the {heaviest.offered:.0f} requests that are open")
    return Clear(_both(heaviest))


def _both(side: BothSides) -> str:
    return (
        f"at {side.offered:.3g} streams a token takes {units.ms(side.client_ms or 0.0)} to the client and "
        f"{units.ms(side.engine_ms or 0.0)} in the engine ({side.source})"
    )


def _fired(picture: Picture, side: BothSides) -> Fired:
    evidence = []
    if side.tokens_late:
        headline = f"a token takes {units.times(side.late or 0.0)} as long to the client as in the engine"
    else:
        headline = f"{units.percent(side.missing_share or 0.0)} of the open requests are not in the engine"
    if side.late is not None:
        evidence.append(Observation(_both(side), side.origin))
    if side.queued is not None:
        evidence.append(
            Observation(
                f"the client holds {side.offered:.3g} requests open; the engine runs {side.running:.3g} and "
                f"{side.queued:.3g} wait in it"
            )
        )
    ruled = []
    if side.tokens_late:
        ruled.append(
            RuledOut("S204 prefill-interference", "prompts between the steps are in the engine's time too")
        )
    client = "L101 client-bound"
    if side.innocent:
        ruled.append(RuledOut(client, "the client measured itself and kept up"))
    # The rate that clients see, or none: a rate by steps is the engine's own, which is not what is slow.
    rate = None if picture.load is None else picture.load.tok_s
    gain = _gain(rate, side)
    return Fired(
        status="suspected",
        headline=headline,
        evidence=tuple(evidence),
        recoverable_tok_s=recovered(rate, gain),
        gain=gain,
        ruled_out=tuple(ruled),
        rivals=(
            Rival("a slow network", "the same load from the server's own machine"),
            *(() if side.innocent else (Rival(client, "the load driven by `stepline diagnose URL`"),)),
        ),
        tries=(
            Try("run several API server or detokenizer processes", "a restart; a core for each"),
            Try("lengthen the stream interval", "a restart; tokens come in larger pieces"),
        ),
        proof=Proof("measure the same load with and without text (token ids only), and diagnose both", 60.0),
    )


def _gain(rate: float | None, side: BothSides) -> Gain | None:
    """The engine's own speed, on its present batch at the slow end and on all open requests at the fast one."""
    if rate is None or side.engine_ms is None:
        return None
    low = max(rate, 1000 * side.running / side.engine_ms)
    high = max(low, 1000 * side.offered / side.engine_ms)
    return Gain(tok_s=(low + high) / 2, low=low, high=high, binds_next="the engine's step at the whole load")


RULE = Rule("H304", "frontend-bound", "0.1.0", check)
