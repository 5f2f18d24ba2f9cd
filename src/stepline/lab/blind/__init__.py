"""Faults nobody chose: single changes drawn from an engine's own arguments, the machine, the load and the model.

The sampler knows names and value ranges, never rules: what a change costs is measured afterwards, beside a twin
without it, and the diagnosis is sealed before that twin starts (`seal`).
"""
