"""`stepline lab serve`: a simulated engine on a port of this machine."""

import argparse
import contextlib
import sys
from pathlib import Path
from typing import Any

import msgspec

from stepline.errors import UnreadableEvidence
from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.lab.sim.faults import find_fault
from stepline.lab.sim.start import start

ENGINES = ("sglang", "vllm")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `lab serve`."""
    parser.add_argument(
        "--engine", choices=ENGINES, default="sglang", help="whose surface it has (default sglang)"
    )
    parser.add_argument(
        "--model", default="llama-3.1-8b", help="a bundled model or a config.json (default llama-3.1-8b)"
    )
    parser.add_argument("--gpu", default="h200", help="the GPU it pretends to have (default h200)")
    parser.add_argument("--tp", type=int, default=1, help="ranks that share every layer (default 1)")
    parser.add_argument(
        "--fault",
        default="healthy",
        metavar="CODE[:STRENGTH]",
        help="what is planted, strength 1 to 3 (default healthy)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of its noise (default 0)")
    parser.add_argument("--speed", type=float, default=1.0, help="times real time (default 1)")
    parser.add_argument("--port", type=int, default=30000, help="0 takes a free one (default 30000)")
    parser.add_argument(
        "--trace-dir", type=Path, metavar="DIR", help="where vLLM's profiler writes (default: it has none)"
    )
    parser.add_argument("--log", type=Path, metavar="FILE", help="where its log goes (default stderr)")


def run(args: argparse.Namespace) -> int:
    """Serve until stopped.

    Raises:
        UsageError: A name is unknown, the model does not fit, or the port is taken.
        UnreadableEvidence: The config file is not JSON.
    """
    from stepline.lab.sim.serve import serve_until_stopped  # noqa: PLC0415  # uvloop, only to serve

    fault, strength = find_fault(args.fault)
    model, config = _model(args.model)
    started = start(
        args.engine,
        model,
        config,
        find_gpu(args.gpu),
        fault=fault,
        strength=strength,
        seed=args.seed,
        tp=args.tp,
        changes={"trace_folder": str(args.trace_dir.resolve())} if args.trace_dir else None,
    )
    with args.log.open("w", buffering=1) if args.log else contextlib.nullcontext(sys.stderr) as log:

        def ready(port: int) -> None:
            print(f"http://127.0.0.1:{port}", flush=True)

        serve_until_stopped(started, args.port, log.write, speed=args.speed, ready=ready)
    return 0


def _model(name: str) -> tuple[str, dict[str, Any]]:
    path = Path(name)
    if path.suffix != ".json":
        known = find_model(name)
        return known.hub_id, known.config
    try:
        return path.parent.name or "model", msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, ValueError) as e:
        raise UnreadableEvidence(f"{path}: {e}") from e
