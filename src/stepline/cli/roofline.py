"""`stepline roofline`: what a decode step costs at least, from config, GPU and layout alone."""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from stepline.cli.files import write_text
from stepline.cli.setup_arguments import add_calibration_argument
from stepline.errors import UsageError
from stepline.model.roofline.table import Roofline
from stepline.tasks.roofline import RooflineRequest, roofline

USUAL = RooflineRequest(model="", gpu="")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `roofline`."""
    parser.add_argument("model", metavar="MODEL", help="bundled name, hub id, config.json or model folder")
    parser.add_argument("--gpu", required=True, metavar="NAME", help="as drivers or people call it")
    parser.add_argument("--tp", type=int, default=USUAL.tp, metavar="N", help="tensor parallel GPUs")
    parser.add_argument("--ep", type=int, default=USUAL.ep, metavar="N", help="GPUs that hold whole experts")
    parser.add_argument("--dp", type=int, default=USUAL.dp, metavar="N", help="data-parallel ranks")
    parser.add_argument("--pp", type=int, default=USUAL.pp, metavar="N", help="pipeline stages")
    parser.add_argument("--dp-attention", action="store_true", help="the dp ranks share the tp GPUs")
    parser.add_argument(
        "--batch",
        default=",".join(map(str, USUAL.batches)),
        metavar="N,..",
        help="running sequences of a rank",
    )
    parser.add_argument(
        "--context", type=int, default=USUAL.context_tokens, metavar="N", help="live tokens of a sequence"
    )
    parser.add_argument("--context-length", type=int, metavar="N", help="configured longest context")
    parser.add_argument(
        "--kv-dtype", default=USUAL.kv_dtype, metavar="TYPE", help="fp8, bf16, fp4; default: the model's"
    )
    parser.add_argument(
        "--draft-tokens", type=int, default=USUAL.draft_tokens, metavar="N", help="speculative tokens a step"
    )
    parser.add_argument(
        "--accept-length", type=float, default=USUAL.accept_length, metavar="X", help="tokens a step yields"
    )
    add_calibration_argument(parser)
    parser.add_argument(
        "--what-if", action="append", default=[], metavar="KEY=VALUE", help="any option, changed"
    )
    parser.add_argument(
        "--json", nargs="?", const="-", metavar="FILE", help="write it as JSON; - or nothing for stdout"
    )
    parser.add_argument("--html", metavar="FILE", help="write a page that needs no network")
    parser.add_argument("--png", metavar="FILE", help="draw step against batch (needs stepline[png])")


def run(args: argparse.Namespace) -> int:
    """Print the floors; return the exit code."""
    if args.png:
        from stepline.report.roofline.png import check_library  # noqa: PLC0415

        check_library()
    asked = roofline_request(args)
    changed_request = _changed(asked, args.what_if) if args.what_if else None
    base = roofline(asked)
    changed = roofline(changed_request) if changed_request else None
    if args.json:
        _write(args.json, _json(base, changed))
    if args.html:
        from stepline.report.roofline.html import page  # noqa: PLC0415

        _write(args.html, page(base, changed, args.what_if))
    if args.png:
        _draw(args, base, asked, changed_request)
    if args.json != "-":
        from stepline.report.roofline.table import show  # noqa: PLC0415

        show(base, changed, args.what_if)
    return 0


def roofline_request(args: argparse.Namespace) -> RooflineRequest:
    """What the command line asks for.

    Raises:
        UsageError: `--batch` is no list of batches.
    """
    return RooflineRequest(
        model=args.model,
        gpu=args.gpu,
        tp=args.tp,
        ep=args.ep,
        dp=args.dp,
        pp=args.pp,
        dp_attention=args.dp_attention,
        batches=_batches(args.batch),
        context_tokens=args.context,
        context_length=args.context_length,
        kv_dtype=args.kv_dtype,
        draft_tokens=args.draft_tokens,
        accept_length=args.accept_length,
        calibration=args.calibration,
    )


def _batches(text: str) -> tuple[int, ...]:
    try:
        batches = tuple(int(word) for word in text.split(","))
    except ValueError as error:
        raise UsageError(f"--batch {text!r} is no list of whole numbers such as 1,16,64") from error
    if min(batches) < 1:
        raise UsageError(f"--batch {text!r} holds a number below 1")
    return batches


CHANGEABLE: dict[str, tuple[str, Callable[[str], Any]]] = {
    "model": ("model", str),
    "gpu": ("gpu", str),
    "tp": ("tp", int),
    "ep": ("ep", int),
    "dp": ("dp", int),
    "pp": ("pp", int),
    "batch": ("batches", _batches),
    "context": ("context_tokens", int),
    "context-length": ("context_length", int),
    "kv-dtype": ("kv_dtype", str),
    "draft-tokens": ("draft_tokens", int),
    "accept-length": ("accept_length", float),
}
"""What `--what-if` may change: the option, its field of the request and how a value is read."""


def _changed(request: RooflineRequest, what_if: list[str]) -> RooflineRequest:
    values: dict[str, Any] = {}
    for text in what_if:
        key, equals, value = text.partition("=")
        if not equals or key not in CHANGEABLE:
            raise UsageError(f"--what-if {text!r} is no KEY=VALUE with a KEY of {', '.join(CHANGEABLE)}")
        field, read = CHANGEABLE[key]
        try:
            values[field] = read(value)
        except ValueError as error:
            raise UsageError(f"--what-if {text!r}: {value!r} is no {read.__name__}") from error
    return msgspec.structs.replace(request, **values)


def _draw(
    args: argparse.Namespace, base: Roofline, asked: RooflineRequest, changed: RooflineRequest | None
) -> None:
    from stepline.report.roofline.png import picture, save  # noqa: PLC0415  # matplotlib, only for pictures

    widest = max(64, *(point.batch for point in base.points))
    # Three batches to a doubling, so that a curve looks like one.
    batches = tuple(
        sorted({round(2 ** (step / 3)) for step in range(3 * (widest.bit_length() - 1) + 1)} | {widest})
    )
    curve = roofline(msgspec.structs.replace(asked, batches=batches))
    other = None if changed is None else roofline(msgspec.structs.replace(changed, batches=batches))
    save(picture(base, curve, other, args.what_if), args.png)


def _json(base: Roofline, changed: Roofline | None) -> str:
    content: dict[str, Any] = msgspec.to_builtins(base, str_keys=True)
    if changed is not None:
        content["what_if"] = msgspec.to_builtins(changed, str_keys=True)
    return json.dumps(content, indent=1) + "\n"


def _write(target: str, text: str) -> None:
    if target == "-":
        sys.stdout.write(text)
    else:
        write_text(target, text)
