"""What a floor is a floor of: a model on GPUs, as one record."""

import msgspec

from stepline.facts.hardware import Gpu
from stepline.model.roofline.architecture_parts import Architecture
from stepline.model.roofline.layout import Layout


class Deployment(msgspec.Struct, frozen=True):
    """A model, one of the equal GPUs it runs on, how it is spread over them, and the type of its KV cache."""

    architecture: Architecture
    gpu: Gpu
    layout: Layout = Layout()
    kv_dtype: str = "auto"
    """Type of cached keys and values; 'auto' is the checkpoint's."""

    @property
    def cache_dtype(self) -> str:
        """Type of cached keys and values, with 'auto' resolved."""
        return self.architecture.kv_dtype if self.kv_dtype == "auto" else self.kv_dtype
