"""The streaming load client."""
