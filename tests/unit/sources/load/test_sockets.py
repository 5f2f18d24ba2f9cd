"""More streams than a shell's default limit on open files."""

import subprocess
import sys

import pytest

CODE = """
import resource
from stepline.errors import UsageError
from stepline.sources.load.drive import allow_sockets
resource.setrlimit(resource.RLIMIT_NOFILE, (64, {hard}))
try:
    allow_sockets(200)
    files = [open("/dev/null") for _ in range(200)]
    print("opened")
except UsageError as error:
    print(error)
"""


@pytest.mark.parametrize(("hard", "says"), [(1000, "opened"), (100, "`ulimit -Hn` allows 100 in all")])
def test_the_limit_is_raised_or_named(hard, says):
    ran = subprocess.run(
        [sys.executable, "-c", CODE.format(hard=hard)], capture_output=True, text=True, check=True
    )
    assert says in ran.stdout
