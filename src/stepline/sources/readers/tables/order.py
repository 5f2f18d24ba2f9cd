"""Two settings that are compared, in an order that comes from what they mean and not from where they stand."""

import re

from stepline.sources.quantities.cells import cell
from stepline.sources.quantities.split import split
from stepline.sources.quantities.words import vocabulary

Key = tuple[int, float, str]


def arm_key(arm: str) -> Key:
    """Sorts arms: the state before a change first, then by number, then by name."""
    words = split(re.sub(r"\b[\w.-]+=", " ", arm))
    states = [vocabulary().get((word,), {}).get("arm") for word in words]
    state = 0 if "before" in states else 2 if "after" in states else 1
    value = cell(arm.rpartition("=")[2])
    return state, value.value if value is not None else 0.0, arm.casefold()
