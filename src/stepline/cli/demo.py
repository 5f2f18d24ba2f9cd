"""`stepline demo`: the main job on a recorded slow server that ships with the package."""

import argparse
from importlib import resources
from pathlib import Path

from stepline.cli.diagnose import diagnose_paths
from stepline.cli.output import add_output_arguments, deliver

CASES = {
    "founding-case": "DeepSeek-V4-Flash cut to 6 layers on an H200, configured for a million tokens",
    "batch-cap": "Llama-3.1-8B on an H200 with a cap of 8 running requests and 64 clients",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `demo`."""
    parser.add_argument("case", nargs="?", default="founding-case", choices=CASES, help="which recording")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Diagnose a recording as `stepline diagnose` would."""
    folder = Path(str(resources.files("stepline.lab").joinpath("recorded", args.case)))
    if not args.quiet and args.json != "-":
        print(
            f"Recorded from a real server: {CASES[args.case]}.\n$ stepline diagnose {args.case} --gpu h200\n"
        )
    settings = {
        "model": None,
        "gpu": "h200",
        "tp": None,
        "ep": None,
        "dp": None,
        "pp": None,
        "context_length": None,
    }
    return deliver(diagnose_paths([str(folder)], argparse.Namespace(**{**vars(args), **settings})), args)
