"""One engine a file: the only place its metric, log and flag names appear."""
