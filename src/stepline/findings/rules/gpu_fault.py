"""P602 gpu-fault.

This rule makes notes only: no log of a server on a faulty GPU stands behind it yet.

What it means:
    The driver or the CUDA runtime reported an error of the GPU while the server ran.

Why it costs:
    Errors in memory, on the bus or on NVLink end kernels or whole servers; repairs (row remapping, replays) take time
    before. What is slow after such a line may be broken.

Evidence needed:
    The server's log, or the kernel's lines in it.

How it decides:
    A note when a line names an Xid, an uncorrectable memory error, a lost GPU or a failed launch. An illegal access
    comes from a kernel's own fault more often than from the GPU.

What would prove it wrong:
    The same kernels fail on another GPU in the same way.

What to try:
    `dmesg | grep Xid`, `nvidia-smi -q -d ECC,ROW_REMAPPER`; the same load on another GPU.

References:
    NVIDIA, XID Errors (deployment documentation)
"""

from stepline.findings.outcome import CannotTell, Clear, Fired, Observation, Outcome, Proof, Rival, Rule, Try
from stepline.model.picture.picture import Picture


def check(picture: Picture) -> Outcome:
    """Decide whether the GPU reported a fault."""
    run = picture.run
    faults = [event for event in run.events if event.kind == "gpu-fault"]
    if not faults:
        if not run.events and not run.decodes:
            return CannotTell(
                "lines of the driver and the CUDA runtime", "save the server's log, and dmesg beside it"
            )
        return Clear("no line of the log names a fault of the GPU")
    number = sum(event.repeats for event in faults)
    return Fired(
        status="suspected",
        headline="the log names an error of the GPU"
        if number == 1
        else f"the log names {number} errors of the GPU",
        evidence=tuple(Observation(event.text, event.origin) for event in faults[:2]),
        rivals=(Rival("a fault of the kernel that ran", "the same load on another GPU"),),
        tries=(
            Try(
                "read the driver's own lines (dmesg, nvidia-smi -q), and move the load to another GPU",
                "a restart",
            ),
        ),
        proof=Proof("the same load on another GPU", 60.0),
    )


RULE = Rule("P602", "gpu-fault", "0.1.0", check, proven=False)
