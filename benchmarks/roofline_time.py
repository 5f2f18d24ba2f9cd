"""Times `stepline roofline` as a process, start to exit, and the import of what it computes with.

python benchmarks/roofline_time.py
"""

import statistics
import subprocess
import sys
import time

COMMAND = """
from stepline.cli.main import main
raise SystemExit(main(["roofline", {model!r}, "--gpu", {gpu!r}, "--tp", {tp!r}]))
"""
BARE = "import msgspec"
IMPORTS = "from stepline.model.roofline import architecture, decode_floor, kv_capacity"
RUNS = 11


def seconds(code: str) -> list[float]:
    """Wall seconds of `RUNS` fresh processes, sorted."""
    found = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
        found.append(time.perf_counter() - start)
    return sorted(found)


def main() -> None:
    cases = {
        "python": "pass",
        "python and msgspec": BARE,
        "imports of the model": IMPORTS,
        "roofline DeepSeek-V4-Flash, 3 batches": COMMAND.format(
            model="DeepSeek-V4-Flash", gpu="b200", tp="4"
        ),
        "roofline Kimi-K3, 3 batches": COMMAND.format(model="Kimi-K3", gpu="b200", tp="8"),
        "roofline Llama-3.1-8B, 3 batches": COMMAND.format(model="Llama-3.1-8B", gpu="h200", tp="1"),
    }
    print(f"{'case':40s} median ms   spread ms   ({RUNS} processes)")
    for name, code in cases.items():
        runs = [1e3 * value for value in seconds(code)]
        print(f"{name:40s} {statistics.median(runs):9.0f}   {runs[0]:.0f} to {runs[-1]:.0f}")


if __name__ == "__main__":
    main()
