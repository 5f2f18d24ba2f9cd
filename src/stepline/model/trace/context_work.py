"""Work sized by the configured context: a factor of it shared along chains of kernels.

One kernel's grid proves nothing (132 blocks are four times 33, and simply the SM count); five neighbours that
do different things and share an odd factor such as 4,097 = 1,048,576 / 256 + 1 do not happen by chance.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepline.evidence.trace import ContextWork, StepGroup
from stepline.evidence.trace_arrays import Column
from stepline.model.trace.work import Work
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    chain = Threshold(
        5,
        "kernels",
        why="That must share the factor.",
        source="arithmetic: with the least factor, 33, five random grids do so once in 4e7",
    )
    factor = Threshold(
        33,
        "factor of the grid",
        why="Smaller ones are met by chance.",
        source="arithmetic, see `chain`",
    )
    gap = Threshold(
        3,
        "kernels",
        why="Without the factor inside a chain: casts of other operands, a GEMM with a persistent grid.",
    )
    rows = Threshold(
        16,
        "tokens",
        why="That a speculative step verifies for a sequence, at most.",
    )
    kinds = Threshold(3, "kernel names", why="A chain of fewer may be one kernel that repeats.")
    width = Threshold(
        255, "extent", why="Smaller numbers of a name's shapes are met by chance: heads, tiles, batches."
    )


_DIVISORS = tuple(2**power for power in range(11))
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Found:
    """Rows of chains; `multiple` is grid blocks per factor, 0 for an enclosed row, −1 outside."""

    factor: int
    divisor: int
    pad: int
    tokens: int
    known: bool
    seen_in: str
    chain: Column
    multiple: NDArray[np.float64]


def find(
    work: Work,
    step: Column,
    context_tokens: int | None,
    sms: int | None,
    batches: Collection[int] = (),
) -> Found | None:
    """The factor with the most work along chains; None where no chain shares one.

    Args:
        work: one device's rows.
        step: the step of each row, −1 for none.
        context_tokens: the configured context; without it only factors 2^k + 1 of at least 257 are tried.
        sms: SM count, whose own multiples say nothing.
        batches: sequences of the steps: factors of theirs, or of as many rows as drafts make of them, say nothing
            either (40 sequences, and 40,960 tokens in blocks of 1,024).
    """
    if context_tokens:
        candidates = {
            (context_tokens // divisor + pad, divisor, pad): context_tokens
            for divisor in _DIVISORS for pad in (0, 1) if context_tokens % divisor == 0
        }  # fmt: skip
    else:
        candidates = {(2**power + 1, 1, 1): 2**power for power in range(8, 23)}
    order = np.lexsort((work.raw.gpu.start_ns, work.raw.gpu.stream, step))
    total = work.raw.gpu.grid.prod(axis=1)
    total[(work.raw.gpu.grid[:, 0] < 1)] = 0
    if sms:
        total[(total == sms) | (total == 2 * sms)] = 0
    length = (work.raw.gpu.end_ns - work.raw.gpu.start_ns).astype(np.float64)
    grids, which_grid = np.unique(total, return_inverse=True)
    extents, which_extents = _extents(work)
    best: tuple[float, int, Found] | None = None
    for (factor, divisor, pad), tokens in candidates.items():
        if factor < T.factor or factor & (factor - 1) == 0:
            continue  # a power of two is also a hidden size times a batch
        odd = factor // (factor & -factor)
        if any(batch * rows % odd == 0 for batch in batches for rows in range(1, T.rows + 1)):
            continue  # the rest of the factor may be a hidden size
        by_grid = (grids > 0) & (grids % factor == 0)
        by_shape = np.array([any(number % factor == 0 for number in found) for found in extents], bool)
        for seen_in, which, distinct in (
            ("grids", which_grid, by_grid),
            ("shapes", which_extents, by_shape),
        ):
            if not distinct.any():
                continue
            hits = distinct[which]
            chain = _chains(hits, order, step, work.raw.gpu.stream, work.raw.gpu.name)
            score = float(length[chain >= 0].sum())
            if score > 0 and (best is None or (score, factor) > best[:2]):
                multiple = np.where(chain < 0, -1.0, np.where(hits, total / factor, 0.0))
                found = Found(
                    factor, divisor, pad, tokens, context_tokens is not None, seen_in, chain, multiple
                )
                best = (score, factor, found)
    return best[2] if best else None


def _extents(work: Work) -> tuple[list[tuple[int, ...]], Column]:
    """Extents over 255 of each distinct list of input shapes (the first is empty).

    And per row which it has.
    """
    strings = work.raw.strings
    shape = np.append(work.raw.operators.shapes, -1)[work.operator]  # the last one is for no operator
    distinct, which = np.unique(np.append(shape, -1), return_inverse=True)
    numbers = [
        {int(text) for text in _NUMBER.findall(strings[i])} if i >= 0 else set() for i in distinct.tolist()
    ]
    return [tuple(n for n in found if n > T.width) for found in numbers], which[:-1]


def _chains(hits: NDArray[np.bool_], order: Column, step: Column, stream: Column, name: Column) -> Column:
    """Number the chains; −1 outside. A chain stays within one step and stream."""
    chain = np.full(len(hits), -1, np.int64)
    at = np.flatnonzero(hits[order])
    if len(at) < T.chain:
        return chain
    rows = order[at]
    new = (np.diff(at) > T.gap + 1) | (np.diff(step[rows]) != 0) | (np.diff(stream[rows]) != 0)
    for number, positions in enumerate(np.split(at, np.flatnonzero(new) + 1)):
        if len(positions) >= T.chain and len(np.unique(name[order[positions]])) >= T.kinds:
            chain[order[positions[0] : positions[-1] + 1]] = number
    return chain


def per_step(
    found: Found,
    work: Work,
    rows: NDArray[np.bool_],
    owned_ns: NDArray[np.float64],
    *,
    steps: int,
    batch: int | None,
) -> ContextWork | None:
    """Its cost in the given rows of one group of steps."""
    mine = rows & (found.chain >= 0)
    if not mine.any() or not steps:
        return None
    chains = len(np.unique(found.chain[mine])) / steps
    busy = float(owned_ns[mine].sum()) / 1e6 / steps
    dearest = int(np.argmax(np.where(mine, owned_ns, -1)))
    return ContextWork(
        context_tokens=found.tokens if found.known else None,
        factor=found.factor,
        divisor=found.divisor if found.known else None,
        pad=found.pad if found.known else None,
        seen_in="grids" if found.seen_in == "grids" else "shapes",
        chains=chains,
        kernels=float((mine & (found.multiple > 0)).sum()) / steps,
        busy_ms=busy,
        enclosed_ms=float(owned_ns[mine & (found.multiple == 0)].sum()) / 1e6 / steps,
        per_chain_per_request_ms=busy / chains / batch if batch else None,
        example=work.raw.strings[work.raw.gpu.name[dearest]][:160],
    )


def span_at(group: StepGroup, context_tokens: int) -> float | None:
    """The decode graph's span, milliseconds, were the configured context another.

    The chains' time shrinks with the factor, though no kernel below the duration of the graph's smallest ones
    (1 µs, the shortest seen in our captures); all else stays.
    """
    span = group.graph_span_ms or group.span_ms
    if not group.context:
        return None
    for work in group.context:
        if work.divisor is None or work.pad is None:
            return None
        factor = context_tokens / work.divisor + work.pad
        scaled = work.busy_ms * factor / work.factor
        span += max(scaled, work.kernels * 1e-3) - work.busy_ms
    return span
