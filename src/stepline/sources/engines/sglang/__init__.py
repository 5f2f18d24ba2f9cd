"""SGLang 0.4.1 to 0.5.23: log lines, `/server_info` and `/metrics`."""
