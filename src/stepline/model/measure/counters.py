"""What an engine's counters say of the time that was recorded."""

from stepline.evidence.metrics import EngineMetrics, growth
from stepline.evidence.run import Run


def over_recording(run: Run) -> EngineMetrics | None:
    """Growth from the first scrape to the last; of a single scrape, or across a restart, all since the start."""
    if not run.metrics:
        return None
    first, last = run.metrics[0], run.metrics[-1]
    if first is last or first.time_s is None or last.time_s is None or first.time_s >= last.time_s:
        return last
    return growth(first, last) or last
