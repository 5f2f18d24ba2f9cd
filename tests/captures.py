"""Every capture at hand, and what the shared folder adds, as (folder, extra arguments)."""

from importlib import resources
from pathlib import Path

DATA = Path(__file__).parent / "data"
RECORDED = Path(str(resources.files("stepline.lab").joinpath("recorded")))
NEAR = sorted(
    folder for root in (DATA / "h200-sglang", DATA / "h200-sglang-2", RECORDED) for folder in root.iterdir()
)
SHARED = ("cap8", "healthy", "nograph", "v4_torch_1m", "v4_torch_8k")
