"""The version of this package; at the bottom of the layers, so that any of them may name it."""

__version__ = "0.1.0"
