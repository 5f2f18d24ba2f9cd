"""Captures with known truth: the matrix of cases, the load on a virtual clock, and what was true of each."""
