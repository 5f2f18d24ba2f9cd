"""The diagnosis as one page: no script, no request, nothing but itself.

Charts are SVG and CSS drawn here. Every value passes the template's escaping, which nothing in this package turns
off: a model may be called `<script>`.
"""

from collections.abc import Iterable

from jinja2 import Environment, PackageLoader, StrictUndefined

from stepline import units
from stepline.findings.detail import Timeline
from stepline.findings.diagnosis import Diagnosis, RunDiagnosis
from stepline.report import charts, lines, runs
from stepline.report.bounded import bounded
from stepline.report.roofline_chart import HEIGHT as ROOF_HEIGHT
from stepline.report.roofline_chart import roofline_chart
from stepline.report.waterfall import waterfall

LARGEST = 1_500_000
"""Bytes of a page that a mail system takes without a question."""
SHORT = 80
"""Characters of each string where whole ones would make the page larger: no honest capture comes near."""


def page(diagnosis: Diagnosis | RunDiagnosis) -> str:
    """The whole report as an HTML document of at most `LARGEST` bytes."""
    whole = _render(bounded(diagnosis))
    return whole if len(whole.encode()) <= LARGEST else _render(bounded(diagnosis, SHORT))


def _render(whole: Diagnosis | RunDiagnosis) -> str:
    diagnosis = whole if isinstance(whole, RunDiagnosis) else whole.chosen
    environment = Environment(
        loader=PackageLoader("stepline.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        ms=units.ms,
        fmt=units.fmt,
        percent=units.percent,
        times=units.times,
        tok_s=units.tok_s,
        size=units.size,
        count=units.count,
        plain=lambda value: f"{value:,.10g}",
        batch=units.batch,
    )
    step, timeline = diagnosis.step, diagnosis.timeline
    return environment.get_template("report.html").render(
        d=diagnosis,
        whole=None if isinstance(whole, RunDiagnosis) else whole,
        runs=runs,
        say=lines,
        facts=tuple(lines.facts(diagnosis)),
        waterfall=waterfall(diagnosis),
        law=None if step is None else charts.law_chart(step),
        law_size=(charts.WIDTH, charts.LAW_HEIGHT),
        roof=None if diagnosis.roofline is None else roofline_chart(diagnosis.roofline),
        roof_size=(charts.WIDTH, ROOF_HEIGHT),
        series=() if timeline is None else charts.series_charts(timeline),
        series_size=(charts.WIDTH, charts.SERIES_HEIGHT),
        moments=() if timeline is None else tuple(_moments(timeline)),
    )


def _moments(timeline: Timeline) -> Iterable[tuple[str, tuple[str, ...]]]:
    """(time, values) of each bin that holds any value, as a table shows them."""
    for index in range(max((len(series.values) for series in timeline.series), default=0)):
        values = [series.values[index] if index < len(series.values) else None for series in timeline.series]
        if any(value is not None for value in values):
            shown = tuple("–" if value is None else units.fmt(value) for value in values)
            yield f"{index * timeline.bin_s:.0f}", shown
