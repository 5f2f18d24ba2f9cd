"""How long a user waits before anything happens: `--help`, `import stepline`, a diagnosis of a recording.

Run: python benchmarks/startup.py [--runs 7]. The bar of the first two is 0.3 s, of the third 1 s.
"""

import argparse
import platform
import statistics
import subprocess
import sys
import time
from importlib import resources

RECORDED = str(resources.files("stepline.lab").joinpath("recorded", "batch-cap"))
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import stepline": [sys.executable, "-c", "import stepline"],
    "stepline --help": [sys.executable, "-m", "stepline", "--help"],
    "stepline diagnose (recording)": [
        sys.executable,
        "-m",
        "stepline",
        "diagnose",
        RECORDED,
        "--gpu",
        "h200",
    ],
}


def main() -> None:
    """Time every command as a whole process and print minimum, median and maximum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    print(
        f"{platform.machine()}, Python {platform.python_version()}, {runs} runs each after one to warm the cache"
    )
    print(f"{'command':32} {'min':>7} {'median':>7} {'max':>7}  s")
    for name, command in COMMANDS.items():
        times = [_seconds(command) for _ in range(runs + 1)][1:]
        print(f"{name:32} {min(times):7.3f} {statistics.median(times):7.3f} {max(times):7.3f}")


def _seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
