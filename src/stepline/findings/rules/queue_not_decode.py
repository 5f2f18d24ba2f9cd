"""L106 queue-not-decode.

What it means:
    Client numbers are read as decode speed, but requests spend their time in a queue; decode is not what is slow.

Why it costs:
    Nothing by itself: more load was offered than the server serves. It sends people to tune kernels.

Evidence needed:
    Streams offered, running batch (by the engine, or rate × time per token), and first-token times.

How it decides:
    Most of a request's time is queueing, and neither a cap (S201) nor the KV pool (S202) is seen to cause it.

What would prove it wrong:
    First-token time stays when fewer streams are offered.

What to try:
    Offer what the server can run, or add replicas; look for the cap if the batch is smaller than it should be.

References:
    docs/identifiability.md; Little, "A Proof for the Queuing Formula L = λW", Operations Research 9(3), 1961.
"""

from stepline import units
from stepline.findings.outcome import CannotTell, Clear, Fired, Observation, Outcome, Proof, Rival, Rule, Try
from stepline.model.picture.picture import Picture
from stepline.model.signs.batch_limit import running_limit


def check(picture: Picture) -> Outcome:
    """Decide whether waiting is taken for decoding."""
    phases, limit = picture.phases, running_limit(picture)
    if limit is not None and limit.kind == "nothing waits":
        return Clear(f"all {limit.offered:g} offered requests run")
    if limit is not None and limit.kind in ("cap", "kv"):
        return Clear(
            "the queue has a cause in the server: "
            + ("a cap (S201)" if limit.kind == "cap" else "the KV pool (S202)")
        )
    if phases.queue_ms is None or phases.decode_ms is None:
        return CannotTell(
            "queueing time: first-token times of two loads", "measure a light and the heavy load"
        )
    if phases.queue_ms < phases.decode_ms:
        return Clear(f"a request queues {units.ms(phases.queue_ms)} and decodes {units.ms(phases.decode_ms)}")
    return Fired(
        status="suspected",
        headline=f"requests wait {units.ms(phases.queue_ms)} and decode {units.ms(phases.decode_ms)}: not decode",
        evidence=(
            Observation(f"first tokens come {units.ms(phases.queue_ms)} later than under the lightest load"),
            Observation(f"decode takes {units.ms(phases.decode_ms)} a request"),
        ),
        rivals=(Rival("S201 batch-capped", "the cap in force and the queue's length"),),
        tries=(Try("offer fewer streams and watch first-token time", "none"),),
        proof=Proof("measure half the streams", 30.0),
    )


RULE = Rule("L106", "queue-not-decode", "0.1.0", check)
