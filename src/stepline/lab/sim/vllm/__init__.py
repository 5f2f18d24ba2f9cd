"""A simulated vLLM 0.20.0: its scheduling policy, HTTP surface, metrics and log."""
