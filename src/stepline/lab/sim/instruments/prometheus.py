"""Pieces of Prometheus' text format that both engines' pages are made of."""

from stepline.lab.sim.instruments.counters import Histogram


def histogram(name: str, labels: str, of: Histogram) -> list[str]:
    """The samples of one histogram."""
    rows = [
        f'{name}_bucket{{{labels},le="{float(bound)}"}} {float(n)}'
        for bound, n in zip(of.bounds, of.under(), strict=True)
    ]
    rows.append(f'{name}_bucket{{{labels},le="+Inf"}} {float(of.count)}')
    return [*rows, f"{name}_sum{{{labels}}} {of.total}", f"{name}_count{{{labels}}} {float(of.count)}"]
