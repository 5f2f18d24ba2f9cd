"""What instruments read of a simulated engine: counters and their pages, kernels, profiler traces, GPU samples."""
