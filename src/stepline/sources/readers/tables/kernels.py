"""Summaries of a profile: kernels or operators with their share of the time, as profilers print and export them.

`key_averages` of PyTorch with or without shapes, `nsys stats`, tables of kernel and percent. A summary does not say at
which batch and context it was taken, so it proves nothing of a load; what it says is kept as a remark.
"""

import re
from collections import defaultdict
from collections.abc import Sequence

from stepline.evidence.origin import Origin
from stepline.evidence.run import EvidenceFile, ReadingDoubt, Run
from stepline.facts.kernels import component
from stepline.sources.quantities.cells import cell
from stepline.sources.quantities.split import split
from stepline.sources.readers.tables.grid import Grid

_NAMES = (("name",), ("kernel",), ("kernel", "name"), ("op",), ("operator",), ("operation",), ("kernels",))
_SHARES = (
    *(
        ("self", "cuda", "pct"),
        ("cuda", "pct"),
        ("gpu", "pct"),
        ("percent",),
        ("pct",),
        ("share",),
        ("time", "pct"),
    ),
    *(("self", "device", "pct"), ("percentage",), ("gpu", "time", "pct")),
)
"""GPU columns of PyTorch (`Self CUDA %`, 2.9 `Self Device %`), of nsys stats (`Time (%)`), and plain words."""
_SHAPES = (("input", "shapes"), ("shapes",), ("shape",))
WIDE = 4096
"""Dimension of a shape from which it may be a length in tokens: widths of layers are named by more kernels."""
WORTH = 0.1


def is_summary(names: Sequence[str]) -> bool:
    """True for the columns of a summary: names of kernels and their share."""
    words = [split(name) for name in names]
    return any(one in _NAMES for one in words) and any(one in _SHARES for one in words)


def read_summary(grid: Grid, file: str) -> Run | None:
    """What a summary says, as a remark; None where its rows hold no share."""
    words = [split(name) for name in grid.names]
    name_at = next(at for at, one in enumerate(words) if one in _NAMES)
    share_at = min(
        (at for at, one in enumerate(words) if one in _SHARES), key=lambda at: _SHARES.index(words[at])
    )
    shape_at = next((at for at, one in enumerate(words) if one in _SHAPES), None)
    rows: list[tuple[str, float, str]] = []
    for cells in grid.rows:
        value = cell(cells[share_at])
        if value is not None and value.value >= 0 and cells[name_at]:
            rows.append((cells[name_at], value.value / 100, "" if shape_at is None else cells[shape_at]))
    total = sum(share for _, share, _ in rows)
    if not rows or not 0 < total <= 1.05:
        return None
    origin = Origin(file, grid.header_line)
    doubts = [ReadingDoubt(topic="kernel-summary", text=_parts(rows, file), origin=origin)]
    if wide := _dimension(rows):
        size, share = wide
        text = f"{100 * share:.0f} % of the profile in {file} runs over a dimension of {size:,}"
        doubts.append(ReadingDoubt(topic="kernel-summary", text=text, origin=origin))
    evidence = EvidenceFile(path=file, kind="kernel summary", records=len(rows))
    return Run(files=(evidence,), doubts=tuple(doubts))


def _parts(rows: Sequence[tuple[str, float, str]], file: str) -> str:
    """Shares by part, and by Amdahl's law the most that removing the two longest kernels would bring."""
    shares: dict[str, float] = defaultdict(float)
    for name, share, _ in rows:
        shares[component(name).component] += share
    largest = sorted(shares.items(), key=lambda part: (-part[1], part[0]))
    said = ", ".join(f"{part} {100 * share:.0f} %" for part, share in largest[:5])
    gone = min(sum(sorted((share for _, share, _ in rows), reverse=True)[:2]), 0.999)
    most = f"; without the two longest kernels at most {1 / (1 - gone):.1f} times faster"
    where = ": a share of that profile, at a batch and context it does not tell"
    return f"{file} names {said} of the time{most if gone >= WORTH else ''}{where}"


def _dimension(rows: Sequence[tuple[str, float, str]]) -> tuple[int, float] | None:
    """The wide dimension that most of the time shares, where it is most of what has shapes."""
    shares: dict[int, float] = defaultdict(float)
    for _, share, shape in rows:
        for size in {int(text) for text in re.findall(r"\d{1,12}", shape) if int(text) >= WIDE}:
            shares[size] += share
    best = max(shares.items(), key=lambda item: item[1], default=None)
    return best if best is not None and best[1] >= WORTH else None
