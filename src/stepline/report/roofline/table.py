"""The floors as a terminal table."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from stepline import units

if TYPE_CHECKING:
    from stepline.model.roofline.table import Point, Roofline


def show(base: "Roofline", changed: "Roofline | None", what_if: list[str]) -> None:
    """Print the floors and, beside them, what the change makes of them."""
    console = Console(highlight=False)
    for line in heading(base):
        console.print(line, soft_wrap=True)
    console.print(_components(base))
    console.print(_totals(base))
    if changed is not None:
        console.print(f"\nWhat if {', '.join(what_if)}:", style="bold")
        console.print(_totals(changed))
    for part in base.not_counted:
        console.print(f"not counted: {part}", style="yellow", soft_wrap=True)


def heading(roofline: "Roofline") -> list[str]:
    """Say in a few lines what was computed for what."""
    layout = roofline.layout
    spread = " ".join(
        f"{key}={getattr(layout, key)}" for key in ("tp", "ep", "dp", "pp") if getattr(layout, key) > 1
    )
    knee = (
        "none, cache reads grow as fast" if roofline.knee_batch is None else f"N = {roofline.knee_batch:.0f}"
    )
    model = (
        f"{roofline.model}: {roofline.params / 1e9:.1f} B parameters, "
        f"{roofline.active_params / 1e9:.2f} B active, {units.size(roofline.checkpoint_bytes)} of weights"
    )
    hardware = f"on {layout.gpus} x {roofline.gpu.name} {spread}".rstrip()
    memory = (
        f"per GPU: weights {units.size(roofline.weight_bytes_per_gpu)}, "
        f"cache {units.size(roofline.kv_bytes_per_token)} a token, "
        f"room for {units.fmt(roofline.capacity_sequences)} such sequences in 90 % of memory"
    )
    typical = roofline.points[0].typical
    return [
        model,
        f"{hardware}, {roofline.context_tokens:,} live tokens",
        memory,
        f"compute-bound from: {knee}",
        *([] if typical is None else [f"typical: {typical.source}"]),
    ]


def _components(roofline: "Roofline") -> Table:
    table = Table(title="Expected floor per GPU (uniform routing)", title_justify="left")
    for column in ("N", "component", "bytes", "FLOPs", "ms", "bound"):
        table.add_column(column, justify="left" if column in {"component", "bound"} else "right")
    for point in roofline.points:
        table.add_section()
        for part in point.expected.components:
            if part.bytes:
                cells = (units.size(part.bytes), flops(part.flops), short_ms(part.ms), part.bound)
                table.add_row(str(point.batch), part.name, *cells)
        collectives = point.expected.collectives
        if collectives.count:
            counted = units.fmt(collectives.ms) if collectives.ms else "not counted"
            table.add_row(str(point.batch), f"{collectives.count} all-reduces", "", "", counted, "latency")
    return table


def _totals(roofline: "Roofline") -> Table:
    table = Table(title="A step", title_justify="left")
    for column in totals_columns(roofline):
        table.add_column(column, justify="right")
    for point in roofline.points:
        table.add_row(*totals_row(point))
    return table


def totals_columns(roofline: "Roofline") -> list[str]:
    """Names of the cells of `totals_row`."""
    configured = (
        [] if roofline.context_length is None else [f"ms if work follows {roofline.context_length:,}"]
    )
    return ["N", "strict ms", "expected ms", "typical ms", *configured, "tok/s per user", "tok/s total"]


def totals_row(point: "Point") -> list[str]:
    """One line of totals; tokens a second are at the expected floor."""
    configured = point.expected.configured_total_ms
    return [
        str(point.batch),
        units.fmt(point.strict.total_ms),
        units.fmt(point.expected.total_ms),
        "-" if point.typical is None else units.fmt(point.typical.ms),
        *([] if configured is None else [units.fmt(configured)]),
        units.fmt(point.tok_s_per_user),
        units.fmt(point.tok_s_total),
    ]


def short_ms(value_ms: float) -> str:
    """Milliseconds; below a microsecond the digits say nothing."""
    return "< 0.001" if 0 < value_ms < 1e-3 else units.fmt(value_ms)


def flops(value: float) -> str:
    """FLOPs in decimal units."""
    for unit, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= scale:
            return f"{units.fmt(value / scale)} {unit}"
    return f"{value:.0f}"
