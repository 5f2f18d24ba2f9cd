"""Captures of real engines with one fault planted on purpose, and of their healthy twins.

`run_matrix` starts each case's engine with random weights of the true shape, drives a closed-loop load
against it, and writes one capture folder a case: `server.log`, `server_info.json`, `metrics.txt`, `gpm.csv`,
`sweep.json`, `config.json`, optionally `decode-TP-0.trace.json.gz`, and `truth.toml`, which says what was
planted. It needs a GPU, the engine, and beyond the standard library only msgspec, which the engine brings;
`nvidia-ml-py` adds `gpm.csv`. The format of a matrix file is in `matrix`.
"""

from stepline.lab.real.matrix import Matrix, read_matrix
from stepline.lab.real.runner import run_matrix

__all__ = ["Matrix", "read_matrix", "run_matrix"]
