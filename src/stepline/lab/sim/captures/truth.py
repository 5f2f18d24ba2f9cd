"""What is true of a simulated capture: what was planted, and what it cost against a healthy twin."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from stepline.lab.sim.captures.cases import Case
from stepline.lab.sim.faults import find_fault
from stepline.lab.sim.forward import Forward

WORTH = 0.1
"""Below a tenth of the load nothing is a finding, at most a note; so a fault that costs less is not expected."""
_DISTORTIONS = ("L102", "L104", "L105")
"""Faults of the measurement: they bend what is read and cost the server nothing."""


class Repeats:
    """Time of the present level, and what of it went into computing retracted requests again."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """A new level begins."""
        self.total_s = self.repeated_s = 0.0

    def forward(self, done: Forward) -> None:
        """Count a forward; repeated tokens cost their share of its tokens."""
        wall_s = done.end_s - done.start_s
        self.total_s += wall_s
        if done.repeated_tokens:
            self.repeated_s += wall_s * done.repeated_tokens / (done.new_tokens + done.batch)


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """The label of a capture."""

    expected: str
    """A rule's code, or empty where nothing may be confirmed."""
    finding: str
    also_true: tuple[str, ...]
    tok_s: float
    """Of the last level."""
    twin_tok_s: float
    """The same without the fault."""
    repeated_share: float
    """Of the last level's time, what retracted requests took to be computed again."""

    def toml(self, case: Case) -> str:
        """`truth.toml`."""
        values = {
            "name": case.name,
            "fault": case.planted.what if case.planted.expected else "",
            "planted": case.fault,
            "strength": case.strength,
            "seed": case.seed,
            "simulated": True,
            "engine": case.engine,
            "gpu": case.gpu,
            "tp": case.tp,
            "model": case.model,
        } | msgspec.to_builtins(self)
        return _toml(values)

    def label(self, case: Case, files: Sequence[str]) -> str:
        """`case.toml`, as `stepline score` reads it."""
        system = {"model": case.model, "gpu": case.gpu, "tp": case.tp}
        return (
            _toml({"slug": case.name, "grade": "simulated"})
            + f"[expected]\nfinding = {json.dumps(self.finding)}\n[system]\n{_toml(system)}"
            + f"[data]\n{_toml({'files': list(files)})}"
        )


def true_of(
    case: Case,
    row: dict[str, Any],
    twin: dict[str, Any],
    repeats: Repeats,
    cured: Mapping[str, dict[str, Any]],
) -> Truth:
    """What the last level with and without the fault say; of a pair `cured` holds the level without each of them.

    A fault that costs less than a tenth of the last level is not expected to be found, nor is one of a pair whose
    removal alone gains less. Retractions that cost less leave the pool's size as the cause.
    """
    rate, twin_rate = float(row["tok_s"]), float(twin["tok_s"])
    repeated = repeats.repeated_s / repeats.total_s if repeats.total_s else 0.0
    fault = case.planted
    expected, finding, also = fault.expected, fault.finding, fault.also_true
    if cured:
        found = [find_fault(name)[0] for name, alone in cured.items() if rate <= (1 - WORTH) * alone["tok_s"]]
        expected = "+".join(each.expected for each in found)
        finding = "+".join(each.finding for each in found) or "healthy"
    elif expected not in ("", *_DISTORTIONS) and rate > (1 - WORTH) * twin_rate:
        expected, finding, also = "", "healthy", ()
    elif expected == "S203" and repeated < WORTH:
        expected, finding, also = "S202", "kv-capacity-bound", ("S203",)
    return Truth(
        expected=expected,
        finding=finding,
        also_true=also,
        tok_s=rate,
        twin_tok_s=twin_rate,
        repeated_share=round(repeated, 4),
    )


def _toml(values: dict[str, Any]) -> str:
    return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())
