"""Sets the floors against 2,111 public measurements, and calibrates the typical line on half of them.

    pip download --no-deps aiconfigurator-core==0.12.0
    python benchmarks/silicon.py aiconfigurator_core-0.12.0-*.whl [--ids silicon-rows.csv] [--write]

Conventions (they only lower the floor): cache 1 byte an element, the stated type on every matrix product but
the head's, context 0.9 x (ISL + OSL/2). The fit minimises relative errors by non-negative least squares,
reweighted towards the median, so that a few queued rows do not bend it.
"""

import argparse
import csv
import statistics
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

sys.path.insert(0, str(Path(__file__).parent))
from silicon_rows import Judged, Row, judge, read

from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.model.roofline.architecture import parse_config
from stepline.model.roofline.decode_floor import decode_floor
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.kv_capacity import capacity_sequences
from stepline.model.roofline.typical import TERMS, features

CLASSES = {
    "hopper": ("NVIDIA H100 SXM", "NVIDIA H200 SXM"),
    "blackwell": ("NVIDIA B200", "NVIDIA B300", "NVIDIA GB200", "NVIDIA GB300"),
}
HEALTHY = ((1, 4.92), (8, 5.08), (32, 5.71), (64, 6.57))
"""Decode windows of a healthy Llama-3.1-8B server (SGLang 0.5.16, H200, about 320 live tokens), in ms."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--ids", type=Path, help="CSV with a column id: score these rows")
    parser.add_argument("--write", action="store_true", help="store the calibration with the facts")
    args = parser.parse_args()
    ids = None
    if args.ids:
        with args.ids.open() as file:
            ids = [line["id"] for line in csv.DictReader(file)]
    rows = read(args.wheel, ids)
    judged = [(row, judge(row)) for row in rows]
    floors(judged)
    fits = typical(judged)
    if args.write:
        write(fits)


def floors(judged: list[tuple[Row, Judged]]) -> None:
    """Print refusals, violations and the spread of measured over floor."""
    scored = [(row, verdict) for row, verdict in judged if not verdict.refused]
    refused = [(row, verdict) for row, verdict in judged if verdict.refused]
    print(f"rows {len(judged)}, refused {len(refused)} ({100 * len(refused) / len(judged):.2f} %)")
    for reason, count in Counter(verdict.reason for _, verdict in refused).items():
        print(f"  refused: {reason}: {count}")
    for reason, count in Counter(verdict.reason for _, verdict in scored if verdict.reason).items():
        print(f"  batch below the listed one: {reason}: {count}")
    for label, routing, collectives, listed in (
        ("strict", "strict", True, False),
        ("expected", "expected", True, False),
        ("strict, listed batch as it stands", "strict", True, True),
        ("expected, listed batch as it stands, no collectives", "expected", False, True),
    ):
        ratios = []
        for row, verdict in scored:
            floor = decode_floor(
                Deployment(row.architecture, row.gpu, row.layout),
                batch=row.listed_batch if listed else verdict.batch,
                context_tokens=row.context_tokens,
                routing=routing,
                collectives=collectives,
            )
            ratios.append((row.tpot_ms / floor.total_ms, row.id))
        below = sorted(pair for pair in ratios if pair[0] < 1)
        values = sorted(ratio for ratio, _ in ratios)
        marks = "  ".join(f"p{q} {values[int(len(values) * q / 100)]:.2f}" for q in (1, 5, 25, 50, 75, 95))
        print(f"{label}: floor above measurement in {len(below)} of {len(values)}; measured / floor {marks}")
        for ratio, name in below:
            print(f"    {ratio:.3f}  {name}")


def typical(judged: list[tuple[Row, Judged]]) -> dict[str, tuple[NDArray[np.float64], float, float]]:
    """Fit on one half of the cells, print the errors on the other; return factors and interval by class."""
    points = [(row, _features(row)) for row, verdict in judged if not verdict.refused]
    fits, errors = {}, []
    for name, gpus in CLASSES.items():
        mine = [point for point in points if point[0].gpu.name in gpus]
        fit = _fit([point for point in mine if not _held_out(point[0])])
        tested = [(row, float(fit @ terms) / row.tpot_ms) for row, terms in mine if _held_out(row)]
        low, high = np.quantile([1 / ratio for _, ratio in tested], [0.1, 0.9])
        fits[name] = (fit, float(low), float(high))
        errors += tested
        print(f"\n{name}: fitted on {len(mine) - len(tested)} rows, tested on {len(tested)}")
        print("  " + ", ".join(f"{term} {value:.4g}" for term, value in zip(TERMS, fit, strict=True)))
        print(f"  80 % of held-out rows measure {low:.2f} to {high:.2f} times the typical line")
    print("\nheld-out error of the typical line")
    _table(errors, lambda row: row.family)
    _table(errors, lambda row: row.engine)
    _table(errors, lambda _: "all")
    _unseen_families(points)
    _healthy(fits["hopper"][0])
    return fits


def _unseen_families(points: list[tuple[Row, NDArray[np.float64]]]) -> None:
    errors = []
    for family in sorted({row.family for row, _ in points}):
        for gpus in CLASSES.values():
            mine = [point for point in points if point[0].gpu.name in gpus]
            tested = [point for point in mine if point[0].family == family]
            if tested:
                fit = _fit([point for point in mine if point[0].family != family])
                errors += [(row, float(fit @ terms) / row.tpot_ms) for row, terms in tested]
    print("\nerror where the whole family was left out of the fit")
    _table(errors, lambda row: row.family)
    _table(errors, lambda _: "all")


def _healthy(fit: NDArray[np.float64]) -> None:
    model = parse_config(find_model("meta-llama/Llama-3.1-8B").config)
    print("\na healthy capture the fit never saw (decode windows, no prefill)")
    for batch, measured_ms in HEALTHY:
        terms = np.array(features(Deployment(model, find_gpu("h200")), batch=batch, context_tokens=320))
        ms = float(fit @ terms)
        print(
            f"  N={batch:3d}  measured {measured_ms:.2f} ms  typical {ms:.2f} ms"
            f"  {100 * (ms / measured_ms - 1):+.1f} %"
        )


def load_of(row: Row) -> dict[str, float]:
    """What a step of a row does, as the typical line asks for it.

    By the listed batch and the prompts that arrive in each step: TPOT must not predict itself.
    """
    room = capacity_sequences(
        Deployment(row.architecture, row.gpu, row.layout), context_tokens=row.context_tokens
    )
    batch = min(row.listed_batch, room)
    prompts = batch / (0.9 * row.osl) if row.mode == "agg" else 0.0
    return {
        "batch": batch,
        "context_tokens": row.context_tokens,
        "prefill_tokens": prompts * 0.9 * row.isl,
        "prefill_sequences": prompts,
    }


def _features(row: Row) -> NDArray[np.float64]:
    """Terms of the typical line."""
    return np.array(features(Deployment(row.architecture, row.gpu, row.layout), **load_of(row)))


def _held_out(row: Row) -> bool:
    """Half of the cells, by a checksum; repeated runs of one cell stay on one side."""
    return zlib.crc32(repr((*row.cell, row.gpu.name)).encode()) % 2 == 1


def _fit(points: list[tuple[Row, NDArray[np.float64]]]) -> NDArray[np.float64]:
    terms = np.array([point[1] for point in points])
    measured = np.array([point[0].tpot_ms for point in points])
    weights = 1 / measured
    factors = np.zeros(terms.shape[1])
    for _ in range(30):
        factors, _residual = nnls(terms * weights[:, None], measured * weights)
        relative = np.abs(terms @ factors / measured - 1)
        weights = 1 / measured / np.sqrt(np.maximum(relative, 0.03))
    return factors


def _table(errors: list[tuple[Row, float]], key: Callable[[Row], str]) -> None:
    groups: dict[str, list[float]] = defaultdict(list)
    for row, ratio in errors:
        groups[key(row)].append(ratio)
    for name, ratios in sorted(groups.items()):
        absolute = [abs(ratio - 1) for ratio in ratios]
        print(
            f"  {name:26s} rows {len(ratios):4d}  MAPE {100 * statistics.fmean(absolute):5.1f} %"
            f"  median {100 * statistics.median(absolute):5.1f} %"
            f"  typical / measured {statistics.median(ratios):.2f}"
        )


def write(fits: dict[str, tuple[NDArray[np.float64], float, float]]) -> None:
    """Store the factors beside the hardware facts."""
    target = Path(__file__).parents[1] / "src" / "stepline" / "facts" / "typical.toml"
    lines = [
        "# Factors of the typical line by class of GPUs, written by benchmarks/silicon.py --write.",
        "# Floors are multiplied (1.25 is 80 % of the datasheet reached); the others are ms.",
    ]
    for name, (fit, low, high) in fits.items():
        gpus = ", ".join(f'"{gpu}"' for gpu in CLASSES[name])
        lines += ["", "[[class]]", f'name = "{name}"', f"gpus = [{gpus}]"]
        lines += [
            'source = "half of the public rows of aiconfigurator-core 0.12.0, all engines (docs/accuracy.md)"'
        ]
        lines += [f"low = {low:.3f}", f"high = {high:.3f}", "", "[class.factors]"]
        lines += [f"{term} = {value:.4g}" for term, value in zip(TERMS, fit, strict=True)]
    _, mark, rest = target.read_text().partition("\n# Measured over the sum of kernels")
    target.write_text("\n".join(lines) + "\n" + mark + rest)
    print(f"\nwrote {target.name}")


if __name__ == "__main__":
    main()
