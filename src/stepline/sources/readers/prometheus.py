"""Prometheus text, as `/metrics` answers it."""

import re
from collections.abc import Iterator, Mapping

from stepline.evidence.origin import Origin
from stepline.evidence.run import EvidenceFile, ReadingDoubt, Run
from stepline.sources.engines.sglang import metrics as sglang
from stepline.sources.peek import Peek, open_bytes

MAX_BYTES = 256 << 20
ENGINES = (sglang,)
_RECOGNISE = re.compile(rb"(?m)^# (?:HELP|TYPE) \S+ |^[a-z_]+:[a-z_]+(?:\{[^}\n]*\})? [-+0-9.eNI]")


def recognises(peek: Peek) -> bool:
    """True when the opening holds Prometheus comments or samples of a known engine."""
    return (
        not peek.binary
        and _RECOGNISE.search(peek.head) is not None
        and any(engine.PREFIX.encode() in peek.head for engine in ENGINES)
    )


def read_prometheus(peek: Peek) -> Run:
    """One scrape of one engine; lines that cannot be read are counted and the first is named."""
    with open_bytes(peek.path) as stream:
        text = stream.read(MAX_BYTES).decode("utf-8", "replace")
    damaged: list[int] = []
    samples = list(_samples(text, damaged))
    engine = next(engine for engine in ENGINES if engine.PREFIX in text)
    record = engine.to_metrics(samples, Origin(peek.name))
    doubts: tuple[ReadingDoubt, ...] = ()
    if damaged:
        where = f"{peek.name}:{damaged[0]}"
        doubts = (
            ReadingDoubt(
                topic="damaged-lines", text=f"{len(damaged)} unreadable metric lines, the first at {where}"
            ),
        )
    file = EvidenceFile(path=peek.name, kind="metrics scrape", records=len(samples), damaged=len(damaged))
    return Run(files=(file,), metrics=(record,), doubts=doubts)


def _samples(text: str, damaged: list[int]) -> Iterator[tuple[str, Mapping[str, str], float]]:
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415  # heavy, only for scrapes

    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if "_bucket{" in line:
            continue  # histograms are used by sum and count; buckets are nine lines in ten
        try:
            for family in text_string_to_metric_families(line):
                for sample in family.samples:
                    yield sample.name, sample.labels, sample.value
        except (ValueError, IndexError):
            damaged.append(number)
