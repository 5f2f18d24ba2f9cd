"""Draws one diagnosis; no arithmetic beyond formatting."""
