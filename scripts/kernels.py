"""The kernels that engines and their libraries ship, by file, read from released packages.

    scripts/kernels.py extract sglang-0.5.16-….whl vllm-0.26.0.tar.gz … > src/stepline/facts/kernel_names.json
    scripts/kernels.py review                 names that no rule of kernel_parts.toml places, by file
    scripts/kernels.py coverage PATH…         share of kernel time and of names with a part, trace by trace

Nothing is installed or run: wheels, sdists and source trees are read as text, libraries as bytes. Of one package give
the newest release first; an older one adds only names that the newer lacks.
"""

import argparse
import json
import sys
from pathlib import Path

from kernel_names import coverage, extract, review


def main() -> None:
    """Parse and run one of the three."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("extract", help="names of all kernels in packages, as JSON")
    one.add_argument("archives", nargs="+", type=Path, metavar="WHEEL|SDIST|TREE@VERSION")
    commands.add_parser("review", help="what no rule places")
    one = commands.add_parser("coverage", help="how much of traces has a part")
    one.add_argument("paths", nargs="+", type=Path)
    one.add_argument(
        "--least", type=float, default=0.97, help="share of decode kernel time that must have a part"
    )
    one.add_argument(
        "--parts", type=Path, help="append trace, part, how found, share and kernel here, to compare"
    )
    args = parser.parse_args()
    if args.command == "extract":
        json.dump(
            extract.packages(args.archives), sys.stdout, indent=0, separators=(",", ":"), sort_keys=True
        )
        print()
    elif args.command == "review":
        review.show()
    else:
        sys.exit(coverage.show(args.paths, args.least, args.parts))


if __name__ == "__main__":
    main()
