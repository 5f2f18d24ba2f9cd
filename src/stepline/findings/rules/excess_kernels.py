"""K400 excess-kernels.

What it means:
    A part of the step that runs on the GPU (attention, products, experts, norms, sampling, copies) takes longer than it
    usually does, and no rule knows why.

Why it costs:
    The step is as long as its kernels; the part's excess is what its repair would give back.

Evidence needed:
    A trace with decode steps, and the usual time of the part: model, live context and a GPU that was calibrated or
    whose class was fitted.

How it decides:
    The part lies above the upper end of its usual time, and its excess over that time is at least 10 % of the step. A
    specific finding that explains half of it takes its place. Always suspected: a shape is no cause.

What would prove it wrong:
    The same kernels with the same times on a server that is known to be sound.

What to try:
    Another backend for that part; the settings that choose its kernels.

References:
    docs/identifiability.md
"""

from stepline.findings.general import finding, judged
from stepline.findings.outcome import Outcome, Proof, Rival, Rule, Try
from stepline.model.picture.picture import Picture
from stepline.model.signs.accounting import HOST_GAP, NOT_ATTRIBUTED
from stepline.model.signs.traced_floors import COMMUNICATION

RIVALS = {
    "attention": ("K402 attention-occupancy", "its grid against the SMs, and steps at two contexts"),
    "gemm": ("K405 wrong-dtype", "the number types in the kernels' names"),
    "moe": ("K404 kernel-fallback", "which kernels run the experts"),
    "elementwise": ("K404 kernel-fallback", "operators or stacks, which name the part they work for"),
}


def check(picture: Picture) -> Outcome:
    """Decide whether a part on the GPU takes longer than usual."""
    found = judged(picture, None, beside=(HOST_GAP, NOT_ATTRIBUTED, COMMUNICATION))
    if not isinstance(found, tuple):
        return found
    account, part = found
    name, by = RIVALS.get(part.name, ("K404 kernel-fallback", "which kernels run in that part, and for whom"))
    return finding(
        picture,
        account,
        part,
        rivals=(
            Rival(name, by),
            Rival("P601 clock-throttle", "SM clocks under the same load: a low clock slows every part"),
        ),
        tries=(Try(f"choose another backend for {part.name}", "a restart"),),
        proof=Proof("stepline compare BEFORE AFTER, recorded with either backend", 60.0),
    )


RULE = Rule("K400", "excess-kernels", "0.1.0", check, general=True)
