"""From the columns of a trace to its summary: steps, attribution, accounting, context-shaped work, ranks."""

from stepline.model.trace.summary import summarise

__all__ = ["summarise"]
