"""Folds the samples of one scrape into the fields of EngineMetrics, by an engine's table of names."""

import math
from collections.abc import Iterable, Mapping

from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin

Samples = Iterable[tuple[str, Mapping[str, str], float]]


def fold(
    samples: Samples,
    names: Mapping[str, str],
    origin: Origin,
    time_s: float | None,
    largest: tuple[str, ...] = ("pool_usage",),
) -> EngineMetrics:
    """Sum each named sample into its field over all labels; of `largest` fields the greatest counts."""
    found: dict[str, float] = {}
    for name, _, value in samples:
        field = names.get(name)
        if field is None or math.isnan(value):
            continue
        if field in largest:
            found[field] = max(found.get(field, value), value)
        else:
            found[field] = found.get(field, 0.0) + value
    return EngineMetrics(origin=origin, time_s=time_s, **found)
