"""Sets the sum of measured kernels against whole layers, healthy servers and public measurements of dense models.

    pip download --no-deps aiconfigurator-core==0.12.0
    python benchmarks/calibrated.py [aiconfigurator_core-0.12.0-*.whl] [--ids silicon-rows.csv] [--calibration FILE]

Without --calibration the one of the H200 that comes with stepline. Nothing here is fitted to what it is compared with.
"""

import argparse
import csv
import statistics
import sys
from pathlib import Path

import msgspec
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from silicon import HEALTHY, load_of
from silicon_rows import judge, read

from stepline.evidence.calibration import STACK_PARTS, Calibration
from stepline.facts.calibrations import measured_gpu, shipped_calibration
from stepline.facts.catalogue import find_model
from stepline.facts.hardware import find_gpu
from stepline.model.roofline.architecture import parse_config
from stepline.model.roofline.calibration_lines import Rates
from stepline.model.roofline.deployment import Deployment
from stepline.model.roofline.typical import typical_step
from stepline.tasks.picture import picture_of
from stepline.tasks.setup import SetupRequest

DATA = Path(__file__).parents[1] / "tests" / "data"
CAPTURES = (
    ("h200-sglang/healthy", ""),
    ("h200-live/healthy", ""),
    ("h200-live/healthy32", ""),
    ("h200-live/tp2", ""),
    ("h200-live/cap8", "batch capped, steps healthy"),
    ("h200-sglang-2/healthy_long_out", ""),
    ("h200-sglang-2/dense_graph", ""),
    ("h200-sglang-2/overlap_off", "host in the way"),
    ("h200-sglang-2/kv_splits8_24k", "attention on half the SMs"),
    ("h200-live/kvsplit1", "attention on few SMs"),
    ("h200-live/graph8", "batch beyond the graphs"),
    ("h200-live/nograph", "graphs off"),
    ("h200-live/tp2_nop2p", "slow exchange between GPUs"),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path, nargs="?")
    parser.add_argument("--ids", type=Path, help="CSV with a column id: only these rows")
    parser.add_argument("--calibration", type=Path)
    args = parser.parse_args()
    if args.calibration:
        calibration = msgspec.json.decode(args.calibration.read_bytes(), type=Calibration)
    else:
        shipped = shipped_calibration(find_gpu("h200").name)
        assert shipped is not None
        calibration = shipped
    bulk(calibration)
    stack(calibration)
    healthy(calibration)
    if not args.calibration:
        captures()
    if args.wheel:
        ids = None
        if args.ids:
            with args.ids.open() as file:
                ids = [line["id"] for line in csv.DictReader(file)]
        public(calibration, args.wheel, ids)


def bulk(calibration: Calibration) -> None:
    """What was reached, beside the datasheet."""
    gpu = find_gpu(calibration.machine.gpu)
    print(
        f"{calibration.machine.gpu}, driver {calibration.machine.driver}, torch {calibration.machine.torch}"
    )
    for each in calibration.of("bandwidth"):
        print(
            f"  {each.name:18s} {each.bytes_s / 1e12:6.2f} TB/s  {each.bytes_s / gpu.bandwidth_bytes_s:5.0%}"
        )
    for each in calibration.of("peak"):
        peak = gpu.peak_flops.get(each.dtype)
        share = f"{each.flops_s / peak:5.0%}" if peak else ""
        mhz = each.conditions.sm_clock_mhz
        print(
            f"  {each.name:14s}{each.dtype:5s}{each.flops_s / 1e12:6.0f} TFLOP/s {share}  SM clock {mhz} MHz"
        )
    for dtype in ("bf16", "fp8"):
        for rows in sorted({each.shape["rows"] for each in calibration.of("stream")}):
            rates = [
                each.bytes_s / 1e12
                for each in calibration.of("stream")
                if (each.dtype, each.shape["rows"]) == (dtype, rows)
            ]
            if rates:
                print(f"  weights {dtype} rows {rows:3d}  {min(rates):.2f} to {max(rates):.2f} TB/s")


def stack(calibration: Calibration) -> None:
    """What a kernel costs for following another: whole layers less the sum of their kernels."""
    rates = Rates(calibration)
    print("eight layers in plain torch")
    for each in calibration.of("stack"):
        layer_us = 1e3 * each.ms / each.shape["layers"]
        beside_us = 1e3 * rates.following_ms(each.shape["rows"])
        share = beside_us * sum(count for *_, count in STACK_PARTS) / layer_us
        print(
            f"  N={each.shape['rows']:3d}  {layer_us:.1f} µs a layer, {share:.1%} of it not in its kernels, "
            f"{beside_us:.2f} µs each"
        )


def healthy(calibration: Calibration) -> None:
    """Decode windows of a server that was not looked at."""
    model, gpu = parse_config(find_model("meta-llama/Llama-3.1-8B").config), find_gpu("h200")
    print("a healthy server (decode windows, no prefill)")
    for batch, measured_ms in HEALTHY:
        typical = typical_step(
            Deployment(model, gpu), batch=batch, context_tokens=320, calibration=calibration
        )
        assert typical is not None
        off = typical.ms / measured_ms - 1
        print(f"  N={batch:3d}  measured {measured_ms:.2f} ms  typical {typical.ms:.2f} ms  {off:+.1%}")


def captures() -> None:
    """Servers of `tests/data` at their heaviest load; the last column is what is wrong with them, if anything."""
    print("captures of H200 servers (Llama-3.1-8B, dense_graph a wide model of 5 layers)")
    for name, fault in CAPTURES:
        seen = picture_of(DATA / name, SetupRequest(gpu="h200"))
        assert seen.step is not None
        assert seen.floors is not None
        assert seen.floors.typical is not None
        step, typical = seen.step, seen.floors.typical.ms
        context = 0 if seen.context is None else seen.context.tokens
        print(
            f"  {name:31s} N={step.running:3.0f} L={context:6.0f} {step.measured_ms:6.2f} ms  typical {typical:5.2f}"
            f"  measured / typical {step.measured_ms / typical:4.2f}  {fault}"
        )


def public(calibration: Calibration, wheel: Path, ids: list[str] | None) -> None:
    """TPOT of public rows on the same GPU, as far as the calibration describes their models."""
    ratios: dict[str, list[float]] = {}
    for row in read(wheel, ids):
        if row.gpu.name != measured_gpu(calibration) or judge(row).refused:
            continue
        typical = typical_step(
            Deployment(row.architecture, row.gpu, row.layout), **load_of(row), calibration=calibration
        )
        if typical is not None and "measured on" in typical.source:
            for key in (row.family, f"{row.family} {row.engine}", "all"):
                ratios.setdefault(key, []).append(row.tpot_ms / typical.ms)
    print("public rows: TPOT, prefill between steps included")
    for key, found in sorted(ratios.items()):
        low, high = np.quantile(found, [0.1, 0.9])
        error = statistics.fmean(abs(1 / ratio - 1) for ratio in found)
        print(
            f"  {key:34s} rows {len(found):3d}  MAPE {error:5.1%}  measured / typical "
            f"{statistics.median(found):.2f} ({low:.2f} to {high:.2f})"
        )


if __name__ == "__main__":
    main()
