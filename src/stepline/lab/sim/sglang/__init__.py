"""A simulated SGLang 0.5.16: its scheduling policy, HTTP surface, metrics and log."""
