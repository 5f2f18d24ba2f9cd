"""`stepline lab`: evidence with known truth, made on this machine."""

import argparse
import sys
from pathlib import Path

from stepline.cli import lab_calibrate, lab_campaign, lab_serve, lab_simulated
from stepline.errors import UsageError
from stepline.lab.real import read_matrix, run_matrix
from stepline.lab.real import runner as real

SHIPPED = Path(real.__file__).parent
"""Matrix files that come with stepline, by their stem."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `lab`."""
    verbs = parser.add_subparsers(dest="lab_verb", metavar="VERB", required=True)
    run_ = verbs.add_parser("run", help="start engines with planted faults, load them, keep the recordings")
    _matrix(run_)
    lab_simulated.add_arguments(run_)
    run_.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder of recordings")
    run_.add_argument("--port", type=int, default=30000, help="first port to serve on (default 30000)")
    run_.add_argument(
        "--ready",
        type=float,
        default=600,
        metavar="SECONDS",
        help="how long an engine may take to start (600)",
    )
    faults = verbs.add_parser("faults", help="list the faults that `serve` plants, or the cases of a matrix")
    _matrix(faults, optional=True)
    faults.add_argument("--json", action="store_true", help="as JSON")
    lab_calibrate.add_arguments(
        verbs.add_parser("calibrate", help="measure what the GPUs here reach, for the typical line")
    )
    lab_campaign.add_arguments(
        verbs.add_parser("campaign", help="blind cases: drawn, answered, sealed, and only then measured")
    )
    lab_serve.add_arguments(verbs.add_parser("serve", help="serve a simulated engine with a planted fault"))


def _matrix(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    stems = ", ".join(sorted(path.stem for path in SHIPPED.glob("*.toml")))
    parser.add_argument(
        "matrix",
        nargs="?" if optional else None,
        help=f"a matrix file, or one that is shipped: {stems}; `simulated` needs no GPU",
    )
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this case (repeatable)")


def run(args: argparse.Namespace) -> int:
    """Serve, list, or run the cases; 0 when every one was captured.

    Returns:
        0, or 3 when some cases failed: each of them left `<name>.failed.log`.

    Raises:
        UsageError: the matrix or a case is not there.
    """
    if args.lab_verb == "serve":
        return lab_serve.run(args)
    if args.lab_verb == "campaign":
        return lab_campaign.run(args)
    if args.lab_verb == "calibrate":
        return lab_calibrate.run(args)
    if args.matrix is None:
        return lab_simulated.list_faults(as_json=args.json)
    if args.matrix == lab_simulated.NAME and args.lab_verb == "run":
        return lab_simulated.run(args)
    path = Path(args.matrix)
    if not path.is_file():
        path = SHIPPED / f"{args.matrix}.toml"
    if not path.is_file():
        raise UsageError(
            f"{args.matrix} is neither a file nor a shipped matrix; `stepline lab faults -h` names those"
        )
    matrix = read_matrix(path)
    if args.lab_verb == "faults":
        chosen = [case for case in matrix.case if not args.only or case.name in args.only]
        for case in chosen:
            sys.stdout.write(f"{case.name:24}{case.expected or 'nothing':9}{case.fault or 'healthy'}\n")
        return 0
    from stepline.cli.lab_real import record  # noqa: PLC0415  # a client and samplers, only to run engines

    failed = run_matrix(matrix, args.output, record, only=args.only, port=args.port, ready_s=args.ready)
    for name in failed:
        sys.stderr.write(f"{name} failed: see {args.output / name}.failed.log\n")
    return 3 if failed else 0
