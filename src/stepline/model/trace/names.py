"""Questions about names, asked once a distinct name."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from stepline.evidence.trace_arrays import Column


def named(names: Column, strings: list[str], says: Callable[[str], object]) -> NDArray[np.bool_]:
    """Rows of which `says` is true; `names` are indices into the strings."""
    true = np.zeros(len(strings), bool)
    for index in np.flatnonzero(np.bincount(names, minlength=len(strings))).tolist():
        true[index] = bool(says(strings[index]))
    return true[names]
