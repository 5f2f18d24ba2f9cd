"""Accuracy over labelled cases."""
