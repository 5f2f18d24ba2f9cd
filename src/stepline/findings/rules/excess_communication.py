"""C500 excess-communication.

What it means:
    Collectives take longer in a decode step than such exchanges usually do, and no rule knows why.

Why it costs:
    Every layer waits for them.

Evidence needed:
    A trace with decode steps, and what the exchange usually takes: model, layout and a GPU whose all-reduce is known.

How it decides:
    Communication lies above the upper end of its usual time, and its excess is at least 10 % of the step. C501 or C502
    takes its place where it explains half of it.

What would prove it wrong:
    The same collectives as slow on a server whose links are known to be sound.

What to try:
    A trace of all ranks on one clock, which tells moving data from waiting for a rank.

References:
    docs/identifiability.md
"""

from stepline.findings.general import finding, judged
from stepline.findings.outcome import Outcome, Proof, Rival, Rule, Try
from stepline.model.picture.picture import Picture
from stepline.model.signs.traced_floors import COMMUNICATION


def check(picture: Picture) -> Outcome:
    """Decide whether collectives take longer than usual."""
    found = judged(picture, (COMMUNICATION,))
    if not isinstance(found, tuple):
        return found
    return finding(
        picture,
        *found,
        rivals=(
            Rival("C501 comm-bound", "traces of all ranks on one clock: does data move all the time"),
            Rival("C502 straggler-rank", "traces of all ranks on one clock: do the others wait for one"),
        ),
        tries=(Try("trace every rank at once", "seconds; the server may stand still for some"),),
        proof=Proof("add the traces of all ranks to the folder", 10.0),
    )


RULE = Rule("C500", "excess-communication", "0.1.0", check, general=True)
