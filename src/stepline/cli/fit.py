"""`stepline fit TABLE`: the step law of a table, or the reason why it has none."""

import argparse
import sys

import msgspec

from stepline import units
from stepline.errors import UsageError
from stepline.tasks.fit import fit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `fit`."""
    parser.add_argument("table", help="CSV or JSON with running and step_ms (or tok_s); a log works too")
    parser.add_argument(
        "--predict", default="", metavar="N,N", help="running batches to predict the step for"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    """Fit and print.

    Raises:
        Inconclusive: when the points give no law.
        UsageError: when `--predict` holds anything but batches.
    """
    fitted = fit(args.table, _batches(args.predict))
    if args.json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(fitted), indent=2).decode() + "\n")
        return 0
    law = fitted.law
    slope, fixed = law.per_request_interval, law.fixed_interval
    sign = "-" if law.per_request_ms < 0 else "+"
    equation = f"step = {units.fmt(law.fixed_ms)} {sign} {units.fmt(abs(law.per_request_ms))} N ms"
    lines = [f"{equation} ({law.shape}, {len(law.points)} batches)"]
    if slope is not None and fixed is not None:
        lines.append(
            f"95 %: fixed {units.fmt(fixed.low)} to {units.fmt(fixed.high)} ms, "
            f"per request {units.fmt(slope.low)} to {units.fmt(slope.high)} ms"
        )
    else:
        lines.append("no interval: two batches always lie on a line; measure a third")
    if law.ceiling_tok_s is not None:
        lines.append(f"ceiling {units.tok_s(law.ceiling_tok_s)}: no batch exceeds it while the law holds")
    for each in fitted.predictions:
        span = each.interval
        within = "" if span is None else f" ({units.fmt(span.low)} to {units.fmt(span.high)})"
        lines.append(
            f"at {each.running:g} running: {units.ms(each.step_ms)}{within}, {units.tok_s(each.tok_s)}"
        )
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _batches(words: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in words.split(",") if word.strip())
    except ValueError:
        raise UsageError(
            f"--predict {words}: give running batches as numbers above zero, such as 8,16,64"
        ) from None
