"""Pure functions from evidence to expectation."""
