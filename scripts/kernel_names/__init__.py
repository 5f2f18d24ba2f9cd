"""Kernel names of released packages: read, reviewed, and held against traces."""
