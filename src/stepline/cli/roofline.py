"""`stepline roofline`: what a decode step costs at least, from config, GPU and layout alone."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from stepline.cli.files import write_text
from stepline.cli.setup_arguments import add_calibration_argument
from stepline.errors import UnknownFact, UnreadableEvidence, UsageError
from stepline.evidence.calibration import Calibration
from stepline.facts.calibrations import measured_gpu
from stepline.facts.catalogue import find_model
from stepline.facts.hardware import Gpu, find_gpu
from stepline.model.roofline.architecture import Architecture, parse_config
from stepline.model.roofline.decode_floor import Floor, decode_floor
from stepline.model.roofline.knee import knee_batch
from stepline.model.roofline.kv_capacity import capacity_sequences, kv_bytes_per_token, weight_bytes_per_gpu
from stepline.model.roofline.layout import Layout
from stepline.model.roofline.typical import Typical, typical_step
from stepline.tasks.calibration_file import load

SCHEMA_VERSION = 1


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """The floors of one batch."""

    batch: int
    strict: Floor
    expected: Floor
    typical: Typical | None
    """What healthy servers reach, where the GPU's class is calibrated."""
    tok_s_per_user: float
    """At the expected floor."""
    tok_s_total: float


class Roofline(msgspec.Struct, frozen=True, kw_only=True):
    """Everything `stepline roofline` says about one model on one layout."""

    schema_version: int = SCHEMA_VERSION
    model: str
    params: float
    active_params: float
    checkpoint_bytes: float
    gpu: Gpu
    layout: Layout
    context_tokens: int
    context_length: int | None
    weight_bytes_per_gpu: float
    kv_bytes_per_token: float
    capacity_sequences: float
    knee_batch: float | None
    points: tuple[Point, ...]
    not_counted: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `roofline`."""
    parser.add_argument("model", metavar="MODEL", help="bundled name, hub id, config.json or model folder")
    parser.add_argument("--gpu", required=True, metavar="NAME", help="as drivers or people call it")
    parser.add_argument("--tp", type=int, default=1, metavar="N", help="tensor parallel GPUs")
    parser.add_argument("--ep", type=int, default=1, metavar="N", help="GPUs that hold whole experts")
    parser.add_argument("--dp", type=int, default=1, metavar="N", help="data-parallel ranks")
    parser.add_argument("--pp", type=int, default=1, metavar="N", help="pipeline stages")
    parser.add_argument("--dp-attention", action="store_true", help="the dp ranks share the tp GPUs")
    parser.add_argument("--batch", default="1,16,64", metavar="N,..", help="running sequences of a rank")
    parser.add_argument("--context", type=int, default=8192, metavar="N", help="live tokens of a sequence")
    parser.add_argument("--context-length", type=int, metavar="N", help="configured longest context")
    parser.add_argument(
        "--kv-dtype", default="auto", metavar="TYPE", help="fp8, bf16, fp4; default: the model's"
    )
    parser.add_argument("--draft-tokens", type=int, default=0, metavar="N", help="speculative tokens a step")
    parser.add_argument("--accept-length", type=float, default=1.0, metavar="X", help="tokens a step yields")
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
        from stepline.cli.roofline_png import check_library  # noqa: PLC0415

        check_library()
    base = roofline(args)
    changed = roofline(_changed(args)) if args.what_if else None
    if args.json:
        _write(args.json, _json(base, changed))
    if args.html:
        from stepline.cli.roofline_html import page  # noqa: PLC0415

        _write(args.html, page(base, changed, args.what_if))
    if args.png:
        _draw(args, base, changed)
    if args.json != "-":
        from stepline.cli.roofline_table import show  # noqa: PLC0415

        show(base, changed, args.what_if)
    return 0


def roofline(args: argparse.Namespace) -> Roofline:
    """Return the floors the arguments ask for.

    Raises:
        UsageError: A batch or context is no positive number.
        UnknownFact: The model, GPU, quantisation or layout is not known or impossible.
    """
    batches = _batches(str(args.batch))
    if args.context < 1:
        raise UsageError(f"--context is {args.context}; a sequence attends to 1 token or more")
    if args.accept_length < 1:
        raise UsageError(f"--accept-length is {args.accept_length}; a step yields 1 token or more")
    architecture, gpu = load_architecture(args.model), find_gpu(args.gpu)
    layout = Layout(tp=args.tp, ep=args.ep, dp=args.dp, pp=args.pp, dp_attention=args.dp_attention)
    calibration = _calibration(args.calibration, gpu)
    points = tuple(
        _point(architecture, gpu, layout, args, batch=batch, calibration=calibration) for batch in batches
    )
    where = {"context_tokens": args.context, "kv_dtype": args.kv_dtype}
    return Roofline(
        model=architecture.name,
        params=architecture.params,
        active_params=architecture.active_params,
        checkpoint_bytes=architecture.checkpoint_bytes,
        gpu=gpu,
        layout=layout,
        context_tokens=args.context,
        context_length=args.context_length,
        weight_bytes_per_gpu=weight_bytes_per_gpu(architecture, layout),
        kv_bytes_per_token=kv_bytes_per_token(architecture, layout=layout, kv_dtype=args.kv_dtype),
        capacity_sequences=capacity_sequences(architecture, gpu, layout, **where),
        knee_batch=knee_batch(architecture, gpu, layout, **where),
        points=points,
        not_counted=points[0].expected.not_counted,
    )


def load_architecture(model: str) -> Architecture:
    """Read a model from a folder, a config.json, or the bundled configs by name.

    Beside a config.json, hf_quant_config.json gives the quantisation it may lack and the safetensors index
    or headers give the exact size.

    Raises:
        UnreadableEvidence: The file is no JSON object.
        UnknownFact: No such model, or its config cannot be read into a known architecture.
    """
    path = Path(model)
    if not path.exists():
        if path.suffix == ".json" or model.startswith((".", "/")):
            raise UnknownFact(f"there is no model at {model}")
        known = find_model(model)
        return parse_config(known.config, name=known.hub_id)
    file = path / "config.json" if path.is_dir() else path
    if not file.is_file():
        raise UnknownFact(f"{path} holds no config.json")
    beside = file.parent / "hf_quant_config.json"
    raw = _object(file)
    own = raw.get("quantization_config") or any(
        isinstance(part, dict) and part.get("quantization_config") for part in raw.values()
    )
    quantisation = _object(beside) if beside.is_file() and not own else None
    name = str(raw.get("_name_or_path") or file.resolve().parent.name)
    architecture = parse_config(raw, name=name, quantisation=quantisation)
    return msgspec.structs.replace(architecture, exact_bytes=_weight_bytes(file.parent))


def _weight_bytes(folder: Path) -> float | None:
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        total = _object(index).get("metadata", {}).get("total_size")
        if isinstance(total, int | float):
            return float(total)
    total_bytes = 0
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as stream:
            header = int.from_bytes(stream.read(8), "little")
        total_bytes += file.stat().st_size - 8 - header
    return float(total_bytes) if total_bytes else None


def _object(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text())
    except (ValueError, OSError) as error:
        raise UnreadableEvidence(f"{file} cannot be read as JSON: {error}") from error
    if not isinstance(content, dict):
        raise UnreadableEvidence(f"{file} holds no JSON object")
    return content


def _point(
    architecture: Architecture,
    gpu: Gpu,
    layout: Layout,
    args: argparse.Namespace,
    *,
    batch: int,
    calibration: Calibration | None,
) -> Point:
    strict, expected = (
        decode_floor(
            architecture,
            gpu,
            layout,
            batch=batch,
            context_tokens=args.context,
            routing=routing,
            capacity_context_tokens=args.context_length,
            kv_dtype=args.kv_dtype,
            draft_tokens=args.draft_tokens,
            accept_length=args.accept_length,
        )
        for routing in ("strict", "expected")
    )
    per_user = 1e3 / expected.ms_per_token
    typical = typical_step(
        architecture,
        gpu,
        layout,
        batch=batch,
        context_tokens=args.context,
        kv_dtype=args.kv_dtype,
        calibration=calibration,
    )
    return Point(
        batch=batch,
        strict=strict,
        expected=expected,
        typical=None if args.draft_tokens else typical,
        tok_s_per_user=per_user,
        tok_s_total=per_user * batch * layout.dp,
    )


def _calibration(named: str | None, gpu: Gpu) -> Calibration | None:
    calibration = load(named)
    if named is not None and calibration is not None and measured_gpu(calibration) != gpu.name:
        raise UsageError(f"{named} is of {measured_gpu(calibration)}, not of {gpu.name}")
    return calibration


def _batches(text: str) -> list[int]:
    try:
        batches = [int(word) for word in text.split(",")]
    except ValueError as error:
        raise UsageError(f"--batch {text!r} is no list of whole numbers such as 1,16,64") from error
    if min(batches) < 1:
        raise UsageError(f"--batch {text!r} holds a number below 1")
    return batches


_CHANGEABLE = {
    "model": str, "gpu": str, "tp": int, "ep": int, "dp": int, "pp": int, "batch": str, "context": int,
    "context-length": int, "kv-dtype": str, "draft-tokens": int, "accept-length": float,
}  # fmt: skip


def _changed(args: argparse.Namespace) -> argparse.Namespace:
    values = dict(vars(args))
    for text in args.what_if:
        key, equals, value = text.partition("=")
        if not equals or key not in _CHANGEABLE:
            raise UsageError(f"--what-if {text!r} is no KEY=VALUE with a KEY of {', '.join(_CHANGEABLE)}")
        try:
            values[key.replace("-", "_")] = _CHANGEABLE[key](value)
        except ValueError as error:
            raise UsageError(f"--what-if {text!r}: {value!r} is no {_CHANGEABLE[key].__name__}") from error
    return argparse.Namespace(**values)


def _draw(args: argparse.Namespace, base: Roofline, changed: Roofline | None) -> None:
    from stepline.cli.roofline_png import picture, save  # noqa: PLC0415  # matplotlib, only for pictures

    widest = max(64, *(point.batch for point in base.points))
    # Three batches to a doubling, so that a curve looks like one.
    batches = sorted({round(2 ** (step / 3)) for step in range(3 * (widest.bit_length() - 1) + 1)} | {widest})
    lines = argparse.Namespace(**{**vars(args), "batch": ",".join(map(str, batches))})
    figure = picture(base, roofline(lines), changed and roofline(_changed(lines)), args.what_if)
    save(figure, args.png)


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
