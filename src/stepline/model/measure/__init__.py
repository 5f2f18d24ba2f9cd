"""What a run says was measured: decode windows, levels, the step law, counters, the GPU's use."""
