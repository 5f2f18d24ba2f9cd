"""A running server: what it is, the load driven against it, and everything it says meanwhile, kept as files."""
