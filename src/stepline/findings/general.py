"""General findings: a part of the step that takes longer than usual, whether or not a rule knows why.

They say what the accounting found: the part, its kernels with their shape, what that shape says, the nearest
explanations and what decides. A specific finding that explains at least half of the excess takes the place of one.
"""

from collections.abc import Iterable, Sequence

from stepline import units
from stepline.evidence.trace import TraceKernel
from stepline.facts.hardware import Gpu
from stepline.findings.families import family
from stepline.findings.outcome import (
    CannotTell,
    Clear,
    Fired,
    Observation,
    Outcome,
    Proof,
    Rival,
    Rule,
    Try,
    recovered,
)
from stepline.model.change.estimate import Estimate
from stepline.model.change.gain import Gain
from stepline.model.change.shorter_step import saved_at_load, with_step
from stepline.model.measure.thresholds import T as SHARED
from stepline.model.picture.picture import Picture
from stepline.model.signs.accounting import Accounting, Part, accounting, described
from stepline.model.signs.kernel_shapes import shape_says
from stepline.threshold import Threshold

TRACE = "take a short trace of decode steps without stacks and add it to the folder"
SHOWN = 2
"""Kernels of a part that a finding shows."""


class T:
    """Thresholds of this module."""

    explained = Threshold(
        0.5,
        "share of the excess",
        why="A specific cause that explains so much of it says the same more precisely.",
    )


def judged(
    picture: Picture, names: Iterable[str] | None, beside: Iterable[str] = ()
) -> tuple[Accounting, Part] | Outcome:
    """The accounting and the part of these names that is above its usual time by most; else why there is none.

    Args:
        picture: Where the step is accounted for.
        names: Parts that are asked for; None for all but those of `beside`.
        beside: Parts that other findings are about.
    """
    found = accounting(picture)
    if found is None or picture.traced is None:
        return CannotTell("decode steps by part, which a trace shows", TRACE)
    mine = [
        part for part in found.parts if (part.name not in beside if names is None else part.name in names)
    ]
    known = [part for part in mine if part.typical is not None]
    if not known:
        return CannotTell(
            "the typical time of that part: model, GPU, batch and context of the traced step",
            "give --model and --gpu, and the log or client result of the same load",
        )
    above = [part for part in known if part.above and (part.excess_ms or 0.0) >= SHARED.worth * found.step_ms]
    if not above:
        largest = max(known, key=lambda part: part.excess_ms or 0.0)
        return Clear(f"{largest.name} takes {described(largest)}")
    return found, max(above, key=lambda part: part.excess_ms or 0.0)


def finding(
    picture: Picture,
    found: Accounting,
    part: Part,
    *,
    rivals: Sequence[Rival],
    tries: Sequence[Try],
    proof: Proof,
) -> Fired:
    """What the accounting says of one part above its usual time."""
    excess_ms = part.excess_ms or 0.0
    kernels = [kernel for kernel in found.kernels if kernel.component == part.name]
    gain = _gain(picture, part)
    at = "" if found.running is None else f" at {units.batch(found.running)} running"
    lines = [
        Observation(
            f"{part.name} takes {described(part)}, of a step of {units.ms(found.step_ms)}{at} ({found.instrument})"
            + ("" if found.file is None else f" [{found.file}]")
        )
    ]
    if part.floor_ms is not None:
        lines.append(Observation(f"its floor is {units.ms(part.floor_ms)}"))
    lines += [Observation(kernel_line(kernel, picture.target.gpu)) for kernel in kernels[:SHOWN]]
    lines += [Observation(text) for text in shape_says(picture, part.name, kernels)]
    return Fired(
        status="suspected",
        headline=f"{part.name} takes {units.ms(excess_ms)} more than is typical in a step of {units.ms(found.step_ms)}",
        evidence=tuple(lines),
        recoverable_tok_s=recovered(picture.rate_tok_s, gain),
        gain=gain,
        rivals=tuple(rivals),
        tries=tuple(tries),
        proof=proof,
    )


def kernel_line(kernel: TraceKernel, gpu: Gpu | None) -> str:
    """A kernel with its count, grid, waves and rate; what the trace does not tell is left out."""
    told = [f"{kernel.per_step:.3g} times a step, {units.ms(kernel.busy_ms)}"]
    if kernel.grid is not None:
        blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2]
        told.append(f"{'×'.join(map(str, kernel.grid))} = {blocks:,} blocks")
    if kernel.waves is not None:
        told.append(f"{kernel.waves:.2g} waves")
    if kernel.byte_s is not None:
        share = (
            "" if gpu is None else f" ({units.percent(kernel.byte_s / gpu.bandwidth_bytes_s)} of memory's)"
        )
        moved = kernel.byte_s * kernel.mean_us / 1e6
        told.append(f"{units.size(moved)} at {units.size(kernel.byte_s)}/s{share}")
    return f"`{kernel.name[:60]}`: {', '.join(told)}"


def _gain(picture: Picture, part: Part) -> Gain | None:
    """The rate with the part at its usual time; None without a true step."""
    step, traced, usual = picture.step, picture.traced, part.typical
    if step is None or traced is None or usual is None:
        return None
    steps = []
    for ms in (usual.ms, usual.low_ms, usual.high_ms):
        least, most = saved_at_load(picture, traced, max(0.0, part.measured_ms - ms))
        steps.append((step.measured_ms - most, step.measured_ms - least))
    (fast, slow), (low, _), (_, high) = steps
    least_ms = 0.0 if picture.floors is None else picture.floors.here.total_ms
    estimate = (
        Estimate((fast + slow) / 2, low, high)
        .at_least(min(least_ms, step.measured_ms))
        .at_most(step.measured_ms)
    )
    return with_step(picture, estimate, "the other parts of the step")


def unexplained(
    general: Sequence[tuple[Rule, Fired]], specific: Sequence[tuple[Rule, Fired]]
) -> list[tuple[Rule, Fired]]:
    """The general findings whose place no specific one takes.

    One does that explains half of the excess: by what it recovers, or, of the same letter, confirmed or without saying
    how much. A low clock stretches all kernels alike.
    """
    return [
        (rule, answer)
        for rule, answer in general
        if not any(_takes_place(other, told, rule, answer) for other, told in specific)
    ]


def _takes_place(other: Rule, told: Fired, rule: Rule, answer: Fired) -> bool:
    alike = family(other.code) == family(rule.code) or (family(other.code), family(rule.code)) == (
        "power",
        "kernels",
    )
    if told.recoverable_tok_s is None or answer.recoverable_tok_s is None:
        return alike
    if alike and told.status == "confirmed":
        return True
    return told.recoverable_tok_s >= T.explained * answer.recoverable_tok_s
