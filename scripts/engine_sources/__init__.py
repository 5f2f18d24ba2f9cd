"""Reads engines' released sources as text: nothing of theirs is installed, imported or run."""
