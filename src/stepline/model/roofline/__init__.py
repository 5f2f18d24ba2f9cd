"""From a model, a GPU and a layout to the least time of a step (floor) and its usual time (typical)."""
