"""The decode step under its GPU's roof: as a whole, and as far as a trace tells by part and by kernel."""

from collections.abc import Iterable

from stepline.facts.hardware import Gpu
from stepline.findings.detail import RooflinePoint, RooflineView
from stepline.model.picture.picture import Picture
from stepline.model.roofline.decode_floor import Floor
from stepline.model.signs.traced_floors import kernel_floor_ms, part_floors, peaks

MAX_KERNELS = 12


def roofline(picture: Picture) -> RooflineView | None:
    """None without a step or without its floor."""
    gpu, whole = picture.target.gpu, _whole(picture)
    if gpu is None or whole is None:
        return None
    running, wall_ms, floor = whole
    step = RooflinePoint(
        name="step",
        kind="step",
        bytes=floor.bytes,
        flops=floor.flops,
        ms=wall_ms,
        floor_ms=floor.total_ms,
    )
    return RooflineView(
        running=running,
        bandwidth_bytes_s=gpu.bandwidth_bytes_s,
        peak_flop_s=dict(peaks(picture)),
        points=(step, *_parts(picture), *_kernels(picture, gpu)),
    )


def _whole(picture: Picture) -> tuple[float, float, Floor] | None:
    """Batch, wall and floor: of the traced batch where parts stand beside it, else of the load."""
    traced, step, floors = picture.traced, picture.step, picture.floors
    if floors is None:
        return None
    if traced is not None and traced.wall_ms is not None and traced.group.batch is not None:
        batch = float(traced.group.batch)
        floor = picture.floor_at(batch, floors.used)
        return None if floor is None else (batch, traced.wall_ms, floor)
    return None if step is None else (step.running, step.measured_ms, floors.here)


def _parts(picture: Picture) -> Iterable[RooflinePoint]:
    return (
        RooflinePoint(
            name=part.component,
            kind="part",
            bytes=part.bytes,
            flops=part.flops,
            ms=part.busy_ms,
            floor_ms=part.floor_ms,
        )
        for part in part_floors(picture)
    )


def _kernels(picture: Picture, gpu: Gpu) -> Iterable[RooflinePoint]:
    if picture.traced is None:
        return
    for kernel in picture.traced.group.top[:MAX_KERNELS]:
        floor_ms = kernel_floor_ms(kernel, gpu)
        if floor_ms is not None and kernel.byte_s and kernel.flop_s:
            seconds = kernel.busy_ms / 1e3
            yield RooflinePoint(
                name=kernel.name,
                kind="kernel",
                bytes=kernel.byte_s * seconds,
                flops=kernel.flop_s * seconds,
                ms=kernel.busy_ms,
                floor_ms=floor_ms,
            )
