"""vLLM, V0 and V1 from 0.8.5 to 0.33: log lines, `/server_info` and `/metrics`."""
