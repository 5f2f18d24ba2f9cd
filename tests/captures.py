"""Every capture at hand, and what the shared folder adds."""

from importlib import resources
from pathlib import Path

DATA = Path(__file__).parent / "data"
RECORDED = Path(str(resources.files("stepline.lab").joinpath("recorded")))
SETS = ("h200-sglang", "h200-sglang-2", "h200-live", "h200-torch")
_ROOTS = (*(DATA / name for name in SETS), RECORDED)
NEAR = [folder for root in _ROOTS for folder in sorted(root.iterdir()) if folder.is_dir()]
NEAR += [DATA / "vllm-cpu"]
SHARED = ("cap8", "healthy", "nograph", "v4_torch_1m", "v4_torch_8k")
