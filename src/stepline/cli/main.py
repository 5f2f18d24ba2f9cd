"""`stepline`: one verb a file, loaded when it is called."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from stepline.errors import Interrupted, SteplineError
from stepline.version import __version__

VERBS = {
    "diagnose": "find why a server decodes slowly: a running one by its URL, or recorded evidence",
    "record": "capture a running server, think later",
    "plan": "what a diagnosis would run on a server, without running it",
    "compare": "the verdict on a change: better, worse, same or inconclusive",
    "history": "the ledger of levers tried, over a folder of runs",
    "roofline": "the least time a decode step can take, component by component",
    "lab": "serve a simulated engine with a planted fault, run a matrix of them, or measure what the GPUs here reach",
    "trace": "kernel and step accounting of GPU traces, all ranks",
    "fit": "the step law of a table of running batch and step time",
    "explain": "a rule's own page",
    "demo": "diagnose a recorded slow server, no GPU and no network needed",
    "score": "how often the diagnosis is right over labelled cases",
    "schema": "the JSON Schema of --json",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="stepline",
        description="Why does this LLM server decode slower than its hardware allows, and what does each cause cost?",
        epilog="Exit codes: 0 a diagnosis was made, 1 something reached --fail-on, 2 usage or unreadable evidence, "
        "3 too little evidence for a verdict, 130 after Ctrl-C; compare: 0 better or same, 1 worse, 3 inconclusive.",
    )
    parser.add_argument("--version", action="version", version=f"stepline {__version__}")
    commands = parser.add_subparsers(dest="verb", metavar="COMMAND", required=True)
    arguments = list(sys.argv[1:] if argv is None else argv)
    named = next((word for word in arguments if not word.startswith("-")), None)
    for verb, summary in VERBS.items():
        sub = commands.add_parser(verb, help=summary, description=summary[0].upper() + summary[1:] + ".")
        sub.add_argument("--debug", action="store_true", help="show the traceback of an error")
        if verb == named:
            import_module(f"stepline.cli.{verb}").add_arguments(sub)
    parsed = parser.parse_args(arguments)
    try:
        return int(import_module(f"stepline.cli.{parsed.verb}").run(parsed))
    except SteplineError as error:
        if parsed.debug:
            raise
        print(f"stepline: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt as stop:
        if isinstance(stop, Interrupted):
            print(stop, file=sys.stderr)
        print("stepline: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return _reader_left()
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):  # rich turns that into an exit
            return _reader_left()
        raise
    except Exception as error:
        if parsed.debug:
            raise
        what = f"{type(error).__name__}: {error}"[:200]
        print(
            f"stepline: a fault of stepline's own ({what}); --debug shows where, please report it",
            file=sys.stderr,
        )
        return 2


def _reader_left() -> int:
    """The reader of a pipe has what it wanted: that is no failure."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is buffered has nowhere to go
    return 0
