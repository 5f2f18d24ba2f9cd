"""Recordings of real engines with one fault planted on purpose, and of their healthy twins.

`run_matrix` starts each case's engine with random weights of the true shape, has it recorded, and adds
`truth.toml`, which says what was planted. It needs the engine and whatever the engine needs. The format of a
matrix file is in `matrix`.
"""

from stepline.lab.real.matrix import Matrix, read_matrix
from stepline.lab.real.runner import run_matrix

__all__ = ["Matrix", "read_matrix", "run_matrix"]
