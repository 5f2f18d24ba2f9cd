"""Settings in force, and those of them that may cost time."""
