"""Which thresholds a rule's answer hangs on: its own, and those of all that its check asks.

Found by following the names that `check` reads, so no list can fall behind. What the picture itself was assembled by
is the same for all rules and stands in the modules of `model/measure` and `model/picture`.
"""

from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType

import msgspec

from stepline.findings.outcome import Rule
from stepline.threshold import table


class Decider(msgspec.Struct, frozen=True):
    """One threshold and the module in whose table it stands: "findings/rules/batch_capped"."""

    name: str
    where: str
    value: float
    unit: str
    why: str
    source: str


def thresholds_of(rule: Rule) -> tuple[Decider, ...]:
    """Thresholds that the rule's check reads, directly or through what it calls; its own first."""
    own = _place(rule.check.__module__)
    found = dict.fromkeys(_followed(rule.check, set()))
    return tuple(sorted(found, key=lambda one: one.where != own))


def _followed(thing: object, seen: set[int]) -> Iterator[Decider]:
    """Thresholds read by a function, by the methods of a class, and by all of this project that they name."""
    thing = getattr(thing, "__wrapped__", thing)
    if id(thing) in seen or not str(getattr(thing, "__module__", "")).startswith("stepline."):
        return
    seen.add(id(thing))
    if isinstance(thing, FunctionType):
        yield from _named(thing.__code__, thing.__globals__, seen)
    elif isinstance(thing, type):
        for member in vars(thing).values():
            yield from _followed(getattr(member, "fget", None) or getattr(member, "__func__", member), seen)


def _named(code: CodeType, known: Mapping[str, object], seen: set[int]) -> Iterator[Decider]:
    for name in code.co_names:
        thing = known.get(name)
        for threshold, one in table(thing) if isinstance(thing, type) else ():
            if threshold in code.co_names:
                place = _place(thing.__module__)
                yield Decider(threshold, place, one.value, one.unit, one.why, one.source)
        yield from _followed(thing, seen)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _named(constant, known, seen)


def _place(module: str) -> str:
    return module.removeprefix("stepline.").replace(".", "/")
