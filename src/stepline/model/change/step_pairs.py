"""Time per token of a sequence at running batches that both sides saw, one instrument a line.

It is the decode step, and with speculation the step over its accept length: a step that yields several tokens is not
compared with one that yields one.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from stepline.model.change.pairs import Pair, Pairs
from stepline.model.change.speedup import Measured, from_windows
from stepline.model.measure.instruments import Instrument
from stepline.model.measure.law import LawPoint
from stepline.model.measure.windows import DecodeWindow
from stepline.model.picture.picture import Picture
from stepline.model.picture.step_points import points_by_instrument
from stepline.threshold import Threshold


class T:
    """Thresholds of this module."""

    group = Threshold(
        2.0,
        "times the neighbouring context",
        why="A larger gap begins another group of windows: within a level contexts grow steadily.",
    )
    same_context = Threshold(
        1.1,
        "times the context",
        why="Contexts this close make one line: a tenth more of 700 tokens is under 1 % of the "
        "bytes an 8B model reads at 16 running.",
        source="steps of one load agree in context within 2 % (H200 captures)",
    )
    enough = Threshold(
        4,
        "windows",
        why="They tell how steady a server was at a batch.",
    )


COMPARED = (
    Instrument.WINDOW,
    Instrument.CLIENT_GAP,
    Instrument.RECORDED,
    Instrument.STATED,
    Instrument.STATED_RATE,
)
"""Best first. Means with prefill inside are left to the rates; regressed steps read 3 to 7 % low, and not alike."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One run's step at one batch, by one instrument."""

    instrument: str
    """Its name; with the engine's where engines measure differently."""
    running: float
    context: float | None
    measured: Measured
    by_window: bool = False
    """True of windows of a log, of which one alone may be anything."""


def step_pairs(befores: Sequence[Picture], afters: Sequence[Picture]) -> Pairs:
    """Every batch that both sides measured, each by the best instrument that both have there."""
    before, after = [_seen(one) for one in befores], [_seen(one) for one in afters]
    pairs: list[Pair] = []
    left_out: list[str] = []
    unlike: list[str] = []
    first = [seen for run in before for seen in run]
    for running in sorted({seen.running for seen in first}):
        here, reasons = _at_batch(running, before, after)
        pairs += here
        unlike += reasons
    for side, runs in (("before", before), ("after", after)):
        single = sorted({s.running for run in runs for s in run if _too_short(s)})
        if single:
            left_out.append(
                f"{side}: one window alone at {', '.join(f'{n:g}' for n in single)} running has no spread"
            )
    if not pairs and not unlike:
        unlike = _why_none(before, after)
    return Pairs(
        pairs=tuple(pairs),
        left_out=tuple(left_out),
        unlike=tuple(unlike),
        instruments=(tuple(_instruments(before)), tuple(_instruments(after))),
    )


def _at_batch(
    running: float, before: Sequence[Sequence[Seen]], after: Sequence[Sequence[Seen]]
) -> tuple[list[Pair], list[str]]:
    """The pairs of the best common instrument at a batch, or how the contexts differ."""
    reasons: list[str] = []
    for instrument in _instruments(before):
        sides = [[_at(run, instrument, running) for run in side] for side in (before, after)]
        if not any(sides[0]) or not any(sides[1]):
            continue
        pairs = []
        reference = next(run for run in sides[0] if run)
        several = len(reference) > 1 or any(len(run) > 1 for run in sides[1])
        for seen in reference:
            here, there = (tuple(m for run in side for m in _matching(seen, run)) for side in sides)
            if here and there:
                pairs.append(
                    Pair(
                        measure="time per token",
                        instrument=instrument,
                        level=running,
                        context=seen.context if several else None,
                        before=here,
                        after=there,
                    )
                )
        if pairs:
            return pairs, []
        contexts = [next(run[0].context for run in side if run) for side in sides]
        reasons.append(
            f"at {running:g} running the live context is {_tokens(contexts[0])} before and {_tokens(contexts[1])} after"
        )
    return [], reasons


def _at(run: Sequence[Seen], instrument: str, running: float) -> list[Seen]:
    here = [seen for seen in run if (seen.instrument, seen.running) == (instrument, running)]
    return [seen for seen in here if not _too_short(seen)]


def _matching(seen: Seen, run: Sequence[Seen]) -> list[Measured]:
    return [other.measured for other in run if _same_context(seen.context, other.context)][:1]


def _same_context(one: float | None, other: float | None) -> bool:
    return one is None or other is None or 1 / T.same_context <= one / other <= T.same_context


def _too_short(seen: Seen) -> bool:
    """True of one window of a log; other instruments give one value for many steps."""
    return seen.by_window and seen.measured.windows < 2


def _instruments(runs: Sequence[Sequence[Seen]]) -> list[str]:
    """Those that some run of the side has, best first."""
    return list(dict.fromkeys(seen.instrument for run in runs for seen in run))


def _why_none(before: Sequence[Sequence[Seen]], after: Sequence[Sequence[Seen]]) -> list[str]:
    ours, theirs = _instruments(before), _instruments(after)
    if not ours or not theirs:
        return []
    if not set(ours) & set(theirs):
        return [f"steps come from {ours[0]} before and from {theirs[0]} after"]
    batches = [
        ", ".join(f"{n:g}" for n in sorted({s.running for run in side for s in run}))
        for side in (before, after)
    ]
    return [f"steps were measured at {batches[0]} running before and at {batches[1]} after"]  # fmt: skip


def _seen(picture: Picture) -> list[Seen]:
    """Every step a run tells of, best instrument first."""
    found: list[Seen] = []
    engine, least = picture.target.engine, least_steady(picture)
    for points, instrument in points_by_instrument(
        picture.run, picture.windows, picture.levels, picture.load
    ):
        if instrument not in COMPARED:
            continue
        name = f"{instrument}, {engine}" if instrument.of_engine and engine else instrument.value
        if instrument is Instrument.WINDOW:
            found += [
                Seen(
                    instrument=name,
                    running=running,
                    context=context,
                    by_window=True,
                    measured=_steadied(from_windows([w.step_ms / w.accept_length for w in windows]), least),
                )
                for running, context, windows in window_groups(picture)
            ]
        else:
            found += [_point(point, name, _context_at(picture, point, instrument), least) for point in points]
    return found


def _context_at(picture: Picture, point: LawPoint, instrument: Instrument) -> float | None:
    """Prompt and half the output of the client level behind a point; None for other instruments."""
    if instrument is not Instrument.CLIENT_GAP:
        return None
    for level in picture.levels:
        here = level.running is not None and level.running.running == point.running
        if here and level.input_tokens and level.output_tokens:
            return level.input_tokens + level.output_tokens / 2
    return None


def _point(point: LawPoint, instrument: str, context: float | None, least: float | None) -> Seen:
    spread = None if point.spread_ms is None else point.spread_ms / point.step_ms
    measured = Measured(
        log_speed=-math.log(point.step_ms),
        windows=point.windows,
        spread=spread,
        independent=float(point.windows),
    )
    return Seen(
        instrument=instrument, running=point.running, context=context, measured=_steadied(measured, least)
    )


def least_steady(picture: Picture) -> float | None:
    """Largest spread of decode windows at a batch seen often enough: a server unsteady at one batch is so at others."""
    spreads = [
        statistics.stdev(math.log(window.step_ms) for window in windows)
        for _, _, windows in window_groups(picture)
        if len(windows) >= T.enough
    ]
    return max(spreads, default=None)


def _steadied(measured: Measured, least: float | None) -> Measured:
    """A level with too few windows of its own is taken to be no steadier than the run's least steady one."""
    if least is None or measured.windows >= T.enough:
        return measured
    return msgspec.structs.replace(measured, spread=max(measured.spread or 0.0, least))


def window_groups(picture: Picture) -> list[tuple[float, float | None, list[DecodeWindow]]]:
    """(running, median context or None, decode windows in order) for each batch and context.

    Pools that count whole pages do not tell contexts apart; a window at whose end the pool was empty has none.
    """
    page = picture.run.server.page_tokens
    by_batch: dict[int, list[DecodeWindow]] = defaultdict(list)
    for window in sorted(picture.windows.usable, key=lambda one: one.seq):
        by_batch[window.running].append(window)
    groups: list[tuple[float, float | None, list[DecodeWindow]]] = []
    for running, windows in sorted(by_batch.items()):
        told = [window for window in windows if window.pool_tokens]
        if not told or (page is not None and page.value > 1):
            groups.append((float(running), None, windows))
            continue
        for low, high in _spans(sorted(_context(window) for window in told)):
            inside = [window for window in told if low <= _context(window) <= high]
            groups.append((float(running), statistics.median(_context(w) for w in inside), inside))
    return groups


def _spans(contexts: Sequence[float]) -> list[tuple[float, float]]:
    """Stretches of rising contexts without a gap."""
    spans: list[tuple[float, float]] = []
    for context in contexts:
        if spans and context <= T.group * spans[-1][1]:
            spans[-1] = (spans[-1][0], context)
        else:
            spans.append((context, context))
    return spans


def _context(window: DecodeWindow) -> float:
    return (window.pool_tokens or 0) / window.running


def _tokens(context: float | None) -> str:
    return "not known" if context is None else f"{context:,.0f} tokens"
