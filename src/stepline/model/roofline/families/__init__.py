"""Attention and feed-forward parts by family; each adds one layer to a builder."""
