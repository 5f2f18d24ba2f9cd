"""The floors as a picture: a step against the running batch, and what it is made of."""

from typing import TYPE_CHECKING

from stepline import units
from stepline.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from stepline.model.roofline.table import Roofline

LINES = (("strict", "#111827", ":"), ("expected", "#2563eb", "-"), ("typical", "#d97706", "-"))
COLOURS = {
    "attention weights": "#1d4ed8",
    "kv read": "#60a5fa",
    "indexer": "#0e7490",
    "state": "#67e8f9",
    "moe experts": "#7c3aed",
    "shared expert": "#c4b5fd",
    "dense ffn": "#059669",
    "router and small": "#a3a3a3",
    "head": "#d97706",
    "embedding": "#fcd34d",
    "all-reduces": "#4b5563",
}
"""By component of the floor."""
VISIBLE = 0.005
"""Share of the longest bar below which a part cannot be seen and does not fill the legend."""


def check_library() -> None:
    """Refuse before the floors are computed.

    Raises:
        UsageError: matplotlib is not installed.
    """
    try:
        import matplotlib.figure  # noqa: F401, PLC0415
    except ImportError:
        raise UsageError("--png draws with matplotlib: pip install 'stepline[png]'") from None


def save(figure: "Figure", file: str) -> None:
    """Write the picture; its type follows the file's name.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        figure.savefig(file)
    except (OSError, ValueError) as error:  # ValueError: an ending that is no picture's
        raise UsageError(f"{file}: cannot be written ({error})") from None


def picture(base: "Roofline", curve: "Roofline", changed: "Roofline | None", what_if: list[str]) -> "Figure":
    """Draw a step against the batch on the left, its components on the right.

    Args:
        base: The batches asked for.
        curve: The same at many batches, for the lines.
        changed: `curve` under the changes of `what_if`.
        what_if: The changes, as the user spelled them.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(12, 4.8), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    figure.suptitle(f"A decode step of {base.model} on {base.layout.gpus} x {base.gpu.name}", fontsize=12)
    _steps(left, base, curve, changed, what_if)
    _components(right, base)
    figure.legend(*right.get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=9)
    return figure


def _steps(
    axes: "Axes", base: "Roofline", curve: "Roofline", changed: "Roofline | None", what_if: list[str]
) -> None:
    for name, colour, style in LINES:
        _line(axes, curve, name, colour=colour, style=style, label=name)
        _line(axes, base, name, colour=colour, style="", label=None)
    known = [(point.batch, point.typical) for point in curve.points if point.typical is not None]
    if known:
        batches = [batch for batch, _ in known]
        low, high = [typical.low_ms for _, typical in known], [typical.high_ms for _, typical in known]
        axes.fill_between(batches, low, high, color=LINES[2][1], alpha=0.12, linewidth=0)
    _configured(axes, curve, colour="#dc2626")
    if changed is not None:
        said = f"expected, {', '.join(what_if)}"
        _line(axes, changed, "expected", colour="#be185d", style="--", label=said)
        _configured(axes, changed, colour="#dc2626")
    marks = ((base.capacity_sequences, "memory holds"), (base.knee_batch, "compute-bound from"))
    last = curve.points[-1].batch
    for number, (at, said) in enumerate(marks):
        if at is not None and 1 <= at <= last:
            axes.axvline(at, color="#9ca3af", linewidth=1, linestyle="-.")
            place = (at, 0.98 - 0.35 * number)
            axes.text(
                *place, f" {said} {units.fmt(at)} ", rotation=90, fontsize=8, color="#4b5563",
                ha="right", va="top", transform=axes.get_xaxis_transform(),
            )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel(f"running sequences of a rank, {base.context_tokens:,} live tokens each")
    axes.set_ylabel("ms a step")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="upper left")


def _line(
    axes: "Axes", roofline: "Roofline", name: str, *, colour: str, style: str, label: str | None
) -> None:
    """One quantity over the batches; without a style, dots alone."""
    times = [
        (point.batch, time.ms if name == "typical" else time.total_ms)
        for point in roofline.points
        if (time := getattr(point, name)) is not None
    ]
    if times:
        batches, heights = zip(*times, strict=True)
        marker = "" if style else "o"
        axes.plot(batches, heights, color=colour, linestyle=style, marker=marker, markersize=4, label=label)


def _configured(axes: "Axes", roofline: "Roofline", *, colour: str) -> None:
    """The step whose work follows the configured context, where one was given."""
    times = [
        (point.batch, point.expected.configured_total_ms)
        for point in roofline.points
        if point.expected.configured_total_ms is not None
    ]
    if times:
        batches, heights = zip(*times, strict=True)
        said = f"expected if work follows {roofline.context_length:,} tokens"
        axes.plot(batches, heights, color=colour, linestyle="-.", label=said)


def _components(axes: "Axes", base: "Roofline") -> None:
    """The expected floor's parts, one bar a batch; all-reduces last."""
    parts: dict[str, list[float]] = {name: [0.0] * len(base.points) for name in COLOURS}
    for row, point in enumerate(base.points):
        for part in point.expected.components:
            parts[part.name][row] += part.ms
        parts["all-reduces"][row] = point.expected.collectives.ms
    longest = max(point.expected.total_ms for point in base.points)
    rows = [f"N = {point.batch}" for point in base.points]
    left = [0.0] * len(rows)
    for name, widths in parts.items():
        if any(widths):
            label = name if max(widths) > VISIBLE * longest else None
            axes.barh(rows, widths, left=left, color=COLOURS[name], label=label)
            left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel("ms of each component by itself, expected routing")
    axes.grid(axis="x", alpha=0.25)
    axes.set_axisbelow(True)
