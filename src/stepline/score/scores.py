"""Top-1, top-3, per class precision and recall, coverage, forbidden findings; shares with Wilson intervals.

Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 22, 1927.
"""

import math
from collections.abc import Iterable, Sequence

import msgspec

Z = 1.96


class Share(msgspec.Struct, frozen=True):
    """`hits` of `total` with a 95 % Wilson interval; the shares are None when there is nothing to share."""

    hits: int
    total: int

    @property
    def value(self) -> float | None:
        """The share itself."""
        return self.hits / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % Wilson score interval."""
        if not self.total:
            return None
        n, p = self.total, self.hits / self.total
        centre = (p + Z * Z / (2 * n)) / (1 + Z * Z / n)
        half = Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n)) / (1 + Z * Z / n)
        return max(0.0, centre - half), min(1.0, centre + half)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What was said of one case: findings by rank, and why nothing was read if so."""

    case: str
    expected: str | None
    """The class it counts in; None where nothing may be confirmed."""
    accepts: frozenset[str]
    """Every name that is right; empty where nothing may be confirmed."""
    forbidden: frozenset[str]
    arms: bool
    """True when the evidence holds A/B arms."""
    findings: tuple[str, ...]
    confirmed: frozenset[str]
    error: str | None = None

    @property
    def top_1(self) -> bool:
        """Right at first: an accepted cause ranks first, or nothing is confirmed where nothing may be."""
        return self._right(1)

    @property
    def top_3(self) -> bool:
        """Right among the first three."""
        return self._right(3)

    def _right(self, first: int) -> bool:
        if self.error is not None:
            return False
        return bool(self.accepts & set(self.findings[:first])) if self.accepts else not self.confirmed

    @property
    def answered(self) -> bool:
        """Something was claimed, or silence was asked for and kept."""
        return self.error is None and (bool(self.findings) or not self.accepts)

    @property
    def broken_rules(self) -> frozenset[str]:
        """Forbidden findings that were given."""
        return self.forbidden & frozenset(self.findings)


class ClassScore(msgspec.Struct, frozen=True, kw_only=True):
    """One cause: how often it was named rightly (of those named first) and found (of those that have it)."""

    name: str
    precision: Share
    recall: Share


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """The whole table."""

    cases: int
    top_1: Share
    top_3: Share
    answered: Share
    top_1_arms: Share
    healthy_called_sick: Share
    forbidden: tuple[str, ...]
    classes: tuple[ClassScore, ...]


def score(answers: Sequence[Answer]) -> Scores:
    """Count over answers."""
    names = sorted(
        {a.expected for a in answers if a.expected} | {a.findings[0] for a in answers if a.findings}
    )
    silent = [a for a in answers if not a.accepts]
    arms = [a for a in answers if a.arms]
    return Scores(
        cases=len(answers),
        top_1=_share(a.top_1 for a in answers),
        top_3=_share(a.top_3 for a in answers),
        answered=_share(a.answered for a in answers),
        top_1_arms=_share(a.top_1 for a in arms),
        healthy_called_sick=_share(bool(a.confirmed) for a in silent),
        forbidden=tuple(f"{a.case}: {name}" for a in answers for name in sorted(a.broken_rules)),
        classes=tuple(
            ClassScore(
                name=name,
                precision=_share(name in a.accepts for a in answers if a.findings[:1] == (name,)),
                recall=_share(a.top_1 for a in answers if a.expected == name),
            )
            for name in names
        ),
    )


def _share(hits: Iterable[bool]) -> Share:
    counted = list(hits)
    return Share(sum(counted), len(counted))
