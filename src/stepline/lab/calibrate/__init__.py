"""What the GPUs here reach: copies, matrix products, weights streamed by small batches, launches, all-reduces.

`calibrate` runs a list of small plans with torch, each on its own: one that fails says why and the others go on.
Torch is imported when it is called, not before. Operations of a few microseconds are timed inside CUDA graphs of many
of them, over rotating buffers larger than the L2 cache, so that neither launches nor caches are measured by accident.
"""

from stepline.lab.calibrate.run import calibrate

__all__ = ["calibrate"]
