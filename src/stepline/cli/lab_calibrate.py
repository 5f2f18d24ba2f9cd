"""`stepline lab calibrate`: what the GPUs of this machine reach, saved where `roofline` and `diagnose` look."""

import argparse
import sys
from pathlib import Path

import msgspec

from stepline.cli.files import check_writable, write_text
from stepline.errors import UsageError
from stepline.evidence.calibration import Calibration, Measured
from stepline.lab.calibrate import calibrate
from stepline.tasks.calibration_file import SHOWN, make_folder, place
from stepline.version import __version__

SECONDS = 50.0
"""Enough for every measurement on one H200; torch takes some seconds to load besides."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `lab calibrate`."""
    parser.add_argument("--out", metavar="FILE", help=f"save the calibration there, not in {SHOWN}")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help=f"to measure for, about (default {SECONDS:g})"
    )
    parser.add_argument("--json", action="store_true", help="print the calibration as JSON, not as a table")


def run(args: argparse.Namespace) -> int:
    """Measure and deliver; 0 even where single measurements failed: the record names them with the reason.

    Raises:
        UsageError: no torch, no GPU, or a file that cannot be written.
    """
    if args.seconds <= 0:
        raise UsageError(f"--seconds is {args.seconds:g}; measuring takes more than 0")
    file = place() if args.out is None else Path(args.out)
    if args.out is None:
        make_folder(file)
    check_writable(file)
    calibration = calibrate(
        args.seconds, lambda part: print(f"measuring {part}", file=sys.stderr), version=__version__
    )
    text = msgspec.json.format(msgspec.json.encode(calibration), indent=1).decode() + "\n"
    write_text(file, text)
    print(f"saved in {file}", file=sys.stderr)
    sys.stdout.write(text if args.json else table(calibration))
    return 0


def table(calibration: Calibration) -> str:
    """One line a measurement, for people."""
    machine = calibration.machine
    head = (
        f"{machine.gpus} x {machine.gpu}, driver {machine.driver or 'unknown'}, torch {machine.torch}, "
        f"{calibration.date}, {calibration.seconds:.0f} s"
    )
    lines = [head, *(_line(each) for each in calibration.measured)]
    lines += [f"not measured: {each.group}: {each.name}: {each.reason}" for each in calibration.not_measured]
    return "\n".join(lines) + "\n"


def _line(each: Measured) -> str:
    shape = " ".join(f"{key}={value}" for key, value in each.shape.items())
    rate = f"{each.bytes_s / 1e9:8,.0f} GB/s" if each.bytes else " " * 13
    work = f"{each.flops_s / 1e12:8,.0f} TFLOP/s" if each.group == "peak" else ""
    spread = f"({1e3 * each.low_ms:,.2f} to {1e3 * each.high_ms:,.2f})"
    time = f"{1e3 * each.ms:12,.2f} µs {spread:28}"
    return f"{each.group:10}{each.name:28}{each.dtype:6}{shape:32}{time}{rate}{work}".rstrip()
