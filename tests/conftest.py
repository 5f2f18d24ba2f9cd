import os
from pathlib import Path

import pytest
from hypothesis import settings

# Machines of CI are shared: how long an example takes says nothing about it.
settings.register_profile("stepline", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
# CI judges a change by the same examples every time; new ones are looked for on a developer's machine.
settings.load_profile("ci" if os.environ.get("CI") else "stepline")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shots", metavar="FOLDER", help="keep pictures of the pages that tests/browser opens")


TIMED = ("sources/load", "unit/live", "lab/real")
"""Folders whose tests measure a server in real time: `scripts/check` runs them without a neighbour."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(folder in item.path.as_posix() for folder in TIMED):
            item.add_marker(pytest.mark.timed)


@pytest.fixture(scope="session", autouse=True)
def no_kept_calibration(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a developer measured on a machine of their own decides no test."""
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The maintainers' folder of real captures, beside the checkout or named by STEPLINE_SHARED."""
    named = os.environ.get("STEPLINE_SHARED")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared"
    if not (folder / "data").is_dir():
        pytest.skip(f"needs the folder of real captures ({folder} is absent)")
    return folder
