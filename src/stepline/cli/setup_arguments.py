"""Options that say of the server what the evidence may not say."""

import argparse

from stepline.tasks.calibration_file import SHOWN
from stepline.tasks.setup import UNTOLD, SetupRequest


def add_setup_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of a `SetupRequest`."""
    parser.add_argument(
        "--model", default=UNTOLD.model, help="config.json, model folder, or the name of a bundled model"
    )
    parser.add_argument("--gpu", default=UNTOLD.gpu, help="GPU name, for example h200 or rtx-pro-6000")
    parser.add_argument("--tp", type=int, default=UNTOLD.tp, help="tensor-parallel size")
    parser.add_argument("--ep", type=int, default=UNTOLD.ep, help="expert-parallel size")
    parser.add_argument("--dp", type=int, default=UNTOLD.dp, help="data-parallel size")
    parser.add_argument("--pp", type=int, default=UNTOLD.pp, help="pipeline-parallel size")
    parser.add_argument(
        "--context-length",
        type=int,
        default=UNTOLD.context_length,
        help="context in tokens, where no evidence says it",
    )
    add_calibration_argument(parser)


def add_calibration_argument(parser: argparse.ArgumentParser) -> None:
    """The option that names a calibration."""
    parser.add_argument(
        "--calibration",
        metavar="FILE",
        help=f"what `stepline lab calibrate` measured, for the typical step (default: {SHOWN}, if there)",
    )


def setup_request(args: argparse.Namespace) -> SetupRequest:
    """What the command line says of the server."""
    return SetupRequest(**{name: getattr(args, name) for name in SetupRequest.__struct_fields__})
