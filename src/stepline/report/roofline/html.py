"""The floors as one self-contained page."""

from html import escape
from typing import TYPE_CHECKING

from stepline import units
from stepline.model.roofline.decode_floor import FloorComponent
from stepline.report.roofline.table import flops, heading, short_ms, totals_columns, totals_row

if TYPE_CHECKING:
    from stepline.model.roofline.table import Roofline

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; margin: 1em 0 }
td, th { padding: .25em .7em; text-align: right; border-bottom: 1px solid #ddd }
td:first-child, th:first-child { text-align: left }
.bar { height: .7em; background: #2563eb; display: inline-block }
.compute { background: #d97706 }
.note { color: #92400e }
"""


def page(base: "Roofline", changed: "Roofline | None", what_if: list[str]) -> str:
    """Return the page; bars are each component's share of the expected floor."""
    title = f"Decode floor of {base.model} on {base.layout.gpus} x {base.gpu.name}"
    parts = [f"<h1>{escape(title)}</h1>", *(f"<p>{escape(line)}</p>" for line in heading(base))]
    parts += [_components(base, index) for index in range(len(base.points))]
    parts += ["<h2>A step</h2>", _totals(base)]
    if changed is not None:
        parts += [f"<h2>What if {escape(', '.join(what_if))}</h2>", _totals(changed)]
    parts += [f'<p class="note">not counted: {escape(part)}</p>' for part in base.not_counted]
    body = "\n".join(parts)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style>\n{body}\n</html>\n"
    )


def _components(roofline: "Roofline", index: int) -> str:
    point = roofline.points[index]
    longest = max(part.ms for part in point.expected.components)
    rows = [_row(part, longest) for part in point.expected.components if part.bytes]
    head = "".join(f"<th>{name}</th>" for name in ("component", "bytes", "FLOPs", "ms", "bound", ""))
    return f"<h2>N = {point.batch}, expected routing</h2><table><tr>{head}</tr>{''.join(rows)}</table>"


def _row(part: FloorComponent, longest: float) -> str:
    width = 100 * part.ms / longest
    bar = f'<span class="bar {part.bound}" style="width:{width:.1f}%"></span>'
    cells = (part.name, units.size(part.bytes), flops(part.flops), short_ms(part.ms), part.bound)
    numbers = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f'<tr>{numbers}<td style="text-align:left;width:20em">{bar}</td></tr>'


def _totals(roofline: "Roofline") -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in totals_columns(roofline))
    rows = "".join(
        f"<tr>{''.join(f'<td>{cell}</td>' for cell in totals_row(point))}</tr>" for point in roofline.points
    )
    return f"<table><tr>{head}</tr>{rows}</table>"
