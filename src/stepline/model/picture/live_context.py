"""How many tokens a running sequence really attends to, from the best instrument at hand."""

import statistics
from collections.abc import Sequence

from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.run import Run
from stepline.model.measure.windows import DecodeWindow
from stepline.model.measure.windows import T as WINDOWS
from stepline.model.picture.picture import LiveContext, Load


def live_context(run: Run, windows: Sequence[DecodeWindow], load: Load | None) -> LiveContext | None:
    """The mean live context at a running batch; None when nothing tells.

    Summed sequence lengths come first: a pool counts whole pages, so with pages of 256 tokens a sequence of 343
    reads as 512. The sum is a gauge and counts only while something runs.
    """
    running = None if load is None else load.running / load.ranks
    gauged = _by_gauge(run.metrics, None if load is None else load.running)
    if gauged is not None:
        return LiveContext(tokens=gauged, route="summed sequence lengths (gauge)")
    page = run.server.page_tokens
    if page is None or page.value == 1:
        held = [w.pool_tokens / w.running for w in windows if w.pool_tokens and w.running == running]
        held = held or [w.pool_tokens / w.running for w in windows if w.pool_tokens]
        if held:
            return LiveContext(tokens=statistics.fmean(held), route="pool tokens over running (log)")
    if load is not None and load.input_tokens is not None and load.output_tokens is not None:
        return LiveContext(
            tokens=load.input_tokens + load.output_tokens / 2, route="prompt and half the output (client)"
        )
    for row in run.step_rows:
        if row.context_tokens is not None:
            return LiveContext(tokens=row.context_tokens, route="stated in the table")
    held = [w.pool_tokens / w.running for w in windows if w.pool_tokens]
    if held and page is not None:
        rounded = statistics.fmean(held)
        return LiveContext(
            tokens=max(1.0, rounded - page.value / 2),
            route=f"pool tokens less half a page of {page.value} (log)",
        )
    return None


def _by_gauge(scrapes: Sequence[EngineMetrics], running: float | None) -> float | None:
    """Median over the scrapes at the load's batch; without any, over all in which something ran."""
    lengths = [(s.running, s.live_tokens / s.running) for s in scrapes if s.live_tokens and s.running]
    at_load = [
        tokens for n, tokens in lengths if running and abs(n - running) <= WINDOWS.same_batch * running
    ]
    held = at_load or [tokens for _, tokens in lengths]
    return statistics.median(held) if held else None
