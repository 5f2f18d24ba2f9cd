"""From the columns of a trace to its summary: steps, attribution, accounting, context-shaped work, ranks."""

from stepline.model.trace.context_work import span_at
from stepline.model.trace.summary import join, rank, summarise

__all__ = ["join", "rank", "span_at", "summarise"]
