"""Which way a value was moved from another."""

from typing import Any

from stepline.facts.settings.records import Unknown

Direction = str
"""`raise`, `lower`, `on`, `off`, or `set`: another choice, with no order."""
OFF = (None, False, 0, 0.0, -1, "", "off", "none", "null", "disabled", "auto")
"""Values that leave a setting out of force, whatever its type."""


def direction(base: Any, value: Any) -> Direction | None:
    """How a value stands from another; None where one of them is unknown."""
    if isinstance(base, Unknown) or isinstance(value, Unknown):
        return None
    if isinstance(value, bool) or isinstance(base, bool):
        truth = value if isinstance(value, bool) else value not in OFF
        return "on" if truth else "off"
    if isinstance(value, int | float) and isinstance(base, int | float):
        return "raise" if value > base else "lower" if value < base else None
    if base in OFF and value not in OFF:
        return "on"
    if value in OFF and base not in OFF:
        return "off"
    return "set"
