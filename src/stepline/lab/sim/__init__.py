"""A simulated engine: real surfaces and scheduling, step times from a formula, faults with known truth.

`start` builds one, `serve` puts it on a port, `captures` makes labelled recordings of many, `instruments` are what can
be read of it; `sglang` and `vllm` are its surfaces. The formula is `world`'s own and its constants are in
`calibration.toml`; nothing here knows how a diagnosis decides.
"""
