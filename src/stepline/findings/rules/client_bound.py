"""L101 client-bound.

What it means:
    The program that sends the load cannot keep up: it reads late, sends late, or both.

Why it costs:
    Nothing on the server. What the client reports as the server's time is its own, and a closed loop sends its next
    request late, so the rate falls as if the server were slow.

Evidence needed:
    The client's own lateness and CPU time while it drove the load; stepline's client measures both.

How it decides:
    A timer in the client's loop that fires late bounds how late any event was read. Late for a tenth of the time, or
    a core full at 90 %: confirmed, and such levels are no evidence about the server. It costs no decode rate and
    goes first, since the other numbers are doubted.

What would prove it wrong:
    The same load from an idle machine, or from more processes, reads the same.

What to try:
    Drive the load from another machine or with fewer streams; give the client a core of its own.

References:
    vllm-project/vllm issue 39963 (a client's read buffer made 486 tok/s read as 44)
"""

from stepline import units
from stepline.evidence.load import LoadLevel
from stepline.findings.outcome import (
    CannotTell,
    Clear,
    Fired,
    Observation,
    Outcome,
    Proof,
    Rule,
    RuledOut,
    Try,
)
from stepline.model.measure.client_health import overtaxed
from stepline.model.picture.picture import Picture


def check(picture: Picture) -> Outcome:
    """Decide whether the client made its own times."""
    measured = [level for level in picture.run.levels if level.health is not None]
    if not measured:
        return CannotTell(
            "how late the client itself was while it drove the load",
            "drive the load with `stepline diagnose URL`, whose client measures itself",
        )
    late = [level for level in measured if overtaxed(level.health) is not None]
    if not late:
        worst = max(level.health.late_share for level in measured if level.health is not None)
        return Clear(f"the client was late for {units.percent(worst)} of the time at most")
    if len(late) < len(measured) and _heaviest(measured) not in late:
        return Clear("the client kept up at the heaviest load; levels at which it did not are left out")
    return Fired(
        status="confirmed",
        headline="the client cannot keep up, so its times are not the server's",
        evidence=tuple(
            Observation(f"at C = {level.concurrency:g} {overtaxed(level.health)}", level.origin)
            for level in late
            if level.concurrency is not None
        ),
        ruled_out=(
            RuledOut("a slow server", "the lateness was measured inside the client, whatever the server did"),
        ),
        tries=(
            Try("drive the load from another machine, or give the client a core of its own", "seconds"),
            Try("drive fewer streams: --concurrency", "seconds; says less about a heavy load"),
        ),
        proof=Proof("the same command from an idle machine near the server", 60.0),
    )


def _heaviest(levels: list[LoadLevel]) -> LoadLevel:
    """Of levels driven twice the later one: the first may have been too much for one process."""
    return max(levels, key=lambda level: (level.concurrency or 0.0, level.start_s or 0.0))


RULE = Rule("L101", "client-bound", "0.1.0", check, hides_changes=True)
