"""`stepline fit TABLE`: the step law of a table, or the reason why it has none."""

import argparse
import sys

import msgspec

from stepline import units
from stepline.errors import Inconclusive, UsageError
from stepline.model.measure.law import NoLaw
from stepline.tasks.picture import picture_of


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
    wanted = _batches(args.predict)
    law = picture_of(args.table).law
    if isinstance(law, NoLaw):
        raise Inconclusive(f"no law: {law.reason}; needs {law.needs}")
    predictions = [(running, law.step_ms(running), law.step_interval(running)) for running in wanted]
    if args.json:
        document = {
            "law": msgspec.to_builtins(law),
            "ceiling_tok_s": law.ceiling_tok_s,
            "predictions": [
                {
                    "running": running,
                    "step_ms": step,
                    "tok_s": 1000 * running / step,
                    "interval": msgspec.to_builtins(span),
                }
                for running, step, span in predictions
            ],
        }
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")
        return 0
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
    for running, step, span in predictions:
        within = "" if span is None else f" ({units.fmt(span.low)} to {units.fmt(span.high)})"
        lines.append(
            f"at {running:g} running: {units.ms(step)}{within}, {units.tok_s(1000 * running / step)}"
        )
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _batches(words: str) -> list[float]:
    try:
        batches = [float(word) for word in words.split(",") if word.strip()]
    except ValueError:
        batches = [0.0]
    if not all(0 < batch < float("inf") for batch in batches):
        raise UsageError(f"--predict {words}: give running batches as numbers above zero, such as 8,16,64")
    return batches
