"""A real NVIDIA GPU with torch; skipped where there is none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEES_GPU = "import torch; assert torch.cuda.is_available()"


def run(code: str, *arguments: str) -> str:
    """What Python prints, in a process of its own: torch warns where this project's tests allow no warning."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, env=os.environ
    )
    return done.stdout


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session", autouse=True)
def gpu() -> None:
    try:
        run(SEES_GPU)
    except subprocess.CalledProcessError:
        pytest.skip("needs torch and an NVIDIA GPU")
