"""The settings in which two servers differ, and the causes that each acts on."""

from stepline.facts.levers import find_lever
from stepline.findings.comparison import KnobChange
from stepline.findings.diagnosis import TargetView
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    same_pool = Threshold(
        0.02,
        "share of the KV pool",
        why="Pools sized from free memory differ by less from start to start.",
        source="a few hundred MB of 60 GB on H200 servers",
    )


def changed_knobs(before: TargetView, after: TargetView) -> tuple[KnobChange, ...]:
    """Every setting that is known on a side and differs, or is known on one side alone."""
    ours, theirs = _settings(before), _settings(after)
    return tuple(
        _change(name, ours.get(name), theirs.get(name))
        for name in dict.fromkeys((*ours, *theirs))
        if not _equal(name, ours.get(name), theirs.get(name))
    )


def causes_of(changes: tuple[KnobChange, ...]) -> dict[str, str]:
    """Rule code to the name of the changed setting that acts on it, where both values are known."""
    return {
        code: change.name
        for change in changes
        if change.before is not None and change.after is not None
        for code in change.causes
    }


def _settings(target: TargetView) -> dict[str, str]:
    layout = {name: str(size) for name, size in target.layout.items()}
    server = {"engine": target.engine, "version": target.version}
    known = {name: value for name, value in server.items() if value is not None}
    return {**known, **layout, **{knob.name: knob.value for knob in target.knobs}}


def _equal(name: str, before: str | None, after: str | None) -> bool:
    if before == after:
        return True
    if name != "kv_capacity_tokens" or before is None or after is None:
        return False
    small, large = sorted((float(before), float(after)))
    return large <= (1 + T.same_pool) * small


def _change(name: str, before: str | None, after: str | None) -> KnobChange:
    lever = find_lever(name)
    return KnobChange(
        name=name,
        before=None if before is None else _short(before),
        after=None if after is None else _short(after),
        acts_on=None if lever is None else lever.acts_on,
        causes=() if lever is None else (*lever.causes, *lever.caused),
    )


def _short(value: str) -> str:
    """A list of graph sizes by how many and the largest; the whole list stands in the side's target."""
    if not value.startswith("("):
        return value
    sizes = value.strip("()").rstrip(",").split(", ")
    return f"{len(sizes)} sizes up to {sizes[-1]}"
