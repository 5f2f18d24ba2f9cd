"""The accounting as a diagnosis shows it: one line a part, and what nothing explains as a line of its own."""

from stepline import units
from stepline.findings import diagnosis as view
from stepline.model.picture.picture import Picture
from stepline.model.roofline.typical import Typical
from stepline.model.signs.accounting import FIXED, HOST_GAP, Accounting, Part, accounting


def accounting_lines(picture: Picture) -> tuple[view.AccountingLine, ...]:
    """The step by component: as a trace measured it, else the floors beside the measured step, else the law's parts."""
    found = accounting(picture)
    if found is None:
        return ()
    if picture.traced is not None:
        return tuple(_line(part, _traced_evidence(part, found)) for part in found.parts)
    return _untraced(picture, found)


def accounted(picture: Picture) -> view.Accounted | None:
    """The step that the lines add up to, and the floor that belongs to its batch."""
    found = accounting(picture)
    if found is None or found.running is None:
        return None
    floors = picture.floors
    if picture.traced is None and floors is None:
        return None
    floor = None if floors is None else picture.floor_at(found.running, floors.used)
    return view.Accounted(
        running=found.running, wall_ms=found.step_ms, floor_ms=None if floor is None else floor.total_ms
    )


def unexplained_ms(picture: Picture) -> float | None:
    """Time of the step that no part has; without a trace what the floor leaves."""
    if picture.traced is not None:
        return picture.traced.group.component_ms("unattributed")
    if picture.step is None or picture.floors is None:
        return None
    return picture.step.measured_ms - picture.floors.here.total_ms


def _untraced(picture: Picture, found: Accounting) -> tuple[view.AccountingLine, ...]:
    step, floors = picture.step, picture.floors
    if step is None:
        return ()
    law = tuple(_line(part, _law_evidence(part)) for part in found.parts)
    if floors is None:
        return law if found.instrument == "step law" else ()
    floor = floors.here
    lines = [
        view.AccountingLine(
            component=part.name,
            measured_ms=None,
            floor_ms=part.ms,
            evidence=f"{units.size(part.bytes)}, bound by {part.bound}; not measured: no trace",
        )
        for part in floor.components
    ]
    if floor.collectives.ms:
        source = f"{floor.collectives.count} collectives: {floor.collectives.source}"
        lines.append(
            view.AccountingLine(
                component="communication", measured_ms=None, floor_ms=floor.collectives.ms, evidence=source
            )
        )
    lines.append(
        view.AccountingLine(
            component="not explained by the floor",
            measured_ms=step.measured_ms - floor.total_ms,
            floor_ms=None,
            evidence="wall less floor",
            typical_ms=_usual(floors.typical, less_ms=floor.total_ms),
            excess_ms=None if floors.typical is None else step.measured_ms - floors.typical.ms,
        )
    )
    return tuple(lines)


def _usual(typical: Typical | None, less_ms: float = 0.0) -> view.TypicalSpan | None:
    if typical is None:
        return None
    low, mid, high = (max(0.0, ms - less_ms) for ms in (typical.low_ms, typical.ms, typical.high_ms))
    return view.TypicalSpan(low=low, mid=mid, high=high)


def _line(part: Part, evidence: str) -> view.AccountingLine:
    judged = "" if part.typical is not None else "; not judged"
    return view.AccountingLine(
        component=part.name,
        measured_ms=part.measured_ms,
        floor_ms=part.floor_ms,
        evidence=evidence + judged,
        typical_ms=_usual(part.typical),
        excess_ms=part.excess_ms,
    )


def _traced_evidence(part: Part, found: Accounting) -> str:
    if part.kernels is not None:
        return f"GPU busy in the trace, {part.kernels:.0f} kernels a step"
    assert part.name == HOST_GAP  # noqa: S101  # the one part that no kernel belongs to
    if found.instrument == "trace alone":
        return "first to last GPU work in the trace less GPU busy; the profiler stretches it"
    return f"unprofiled step at {found.running} running less GPU busy"


def _law_evidence(part: Part) -> str:
    return (
        "step law at the load, less what grows"
        if part.name == FIXED
        else "growth by the step law × running batch"
    )
