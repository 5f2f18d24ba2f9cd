"""Prometheus text, as `/metrics` of an engine or a GPU exporter answers it: one scrape, or several in a file."""

import re
from collections.abc import Iterator, Sequence

from stepline.evidence.gpu import GpuSample
from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin, Sourced
from stepline.evidence.run import EvidenceFile, ReadingDoubt, Run
from stepline.evidence.server import ServerFacts
from stepline.evidence.start import Start
from stepline.sources import scrape_time
from stepline.sources.engine import Sample
from stepline.sources.engines import ENGINES
from stepline.sources.peek import Peek
from stepline.sources.readers import dcgm

MAX_BYTES = 256 << 20
METRICS = tuple(engine.metrics for engine in ENGINES if engine.metrics is not None)
_RECOGNISE = re.compile(rb"(?m)^# (?:HELP|TYPE) \S+ |^[A-Za-z_]+[:_][A-Za-z_]+(?:\{[^}\n]*\})? [-+0-9.eNI]")
_SERIES = re.compile(r"(?!#)([^\s{]+(?:\{[^\n]*\})?) \S")
_TYPE = re.compile(r"# TYPE (\S+)")


def recognises(peek: Peek) -> bool:
    """True when the opening holds Prometheus comments or samples of a known engine, or of DCGM."""
    return (
        not peek.binary
        and _RECOGNISE.search(peek.head) is not None
        and any(prefix.encode() in peek.head for prefix in (*(one.prefix for one in METRICS), dcgm.PREFIX))
    )


def read_prometheus(peek: Peek) -> Run:
    """Every scrape of every engine in a file; unreadable lines are counted and the first is named."""
    with peek.open() as stream:
        text = stream.read(MAX_BYTES).decode("utf-8", "replace")
    damaged: list[int] = []
    records: list[EngineMetrics] = []
    gpus: list[GpuSample] = []
    gpu: Sourced[str] | None = None
    start: Start | None = None
    count = 0
    for first_line, block in scrapes(text):
        samples, stamp = _samples(block, first_line, damaged)
        count += len(samples)
        when = stamp or _time_in(block) or scrape_time.from_name(peek.name)
        origin = Origin(peek.name, first_line if first_line > 1 else None)
        records += engine_metrics(samples, origin, when)
        gpus += dcgm.gpu_samples(samples, origin, when)
        start = start or _start_of(samples, origin)
        if gpu is None and (name := dcgm.gpu_name(samples)) is not None:
            gpu = Sourced(name, origin)
    records.sort(key=lambda record: record.time_s or 0.0)
    doubts: tuple[ReadingDoubt, ...] = ()
    if damaged:
        where = f"{peek.name}:{damaged[0]}"
        text = f"{len(damaged)} unreadable metric lines, the first at {where}"
        doubts = (ReadingDoubt(topic="damaged-lines", text=text),)
    file = EvidenceFile(path=peek.name, kind="metrics scrape", records=count, damaged=len(damaged))
    return Run(
        files=(file,),
        server=ServerFacts(gpu=gpu),
        start=start,
        metrics=tuple(records),
        gpu_samples=tuple(sorted(gpus, key=lambda sample: sample.time_s or 0.0)),
        doubts=doubts,
    )


def engine_metrics(samples: Sequence[Sample], origin: Origin, time_s: float | None) -> list[EngineMetrics]:
    """A record of each engine that some of the samples are of."""
    return [
        metrics.to_metrics(samples, origin, time_s)
        for metrics in METRICS
        if any(name.startswith(metrics.prefix) for name, _, _ in samples)
    ]


def _start_of(samples: list[Sample], origin: Origin) -> Start | None:
    """Which process answered, and what it serves."""
    began = next((value for name, _, value in samples if name == "process_start_time_seconds"), None)
    labels = [labels["model_name"] for _, labels, _ in samples if labels.get("model_name")]
    names = tuple(dict.fromkeys(labels))
    return Start(origin=origin, names=names, process_start_s=began) if began or names else None


def scrapes(text: str) -> Iterator[tuple[int, list[str]]]:
    """(number of the first line, lines) of each scrape: a new one where a family or series comes again.

    A comment that says when stands before its scrape, and so also begins one.
    """
    block: list[str] = []
    seen: set[str] = set()
    first = 1
    for number, line in enumerate(text.split("\n"), start=1):
        typed = _TYPE.match(line) or _SERIES.match(line)
        again = typed is not None and typed[1] in seen
        if seen and (again or scrape_time.from_comment(line) is not None):
            held = _trailing_comments(block) if again else 0
            yield first, block[: len(block) - held]
            block, seen, first = block[len(block) - held :], set(), number - held
        if typed:
            seen.add(typed[1])
        block.append(line.rstrip("\r"))
    if any(line.strip() for line in block):
        yield first, block


def _trailing_comments(block: list[str]) -> int:
    """How many comments at the end belong to what follows (`# HELP` stands before `# TYPE`)."""
    count = 0
    while count < len(block) and block[-1 - count].startswith("#"):
        count += 1
    return count


def _time_in(block: list[str]) -> float | None:
    return next((when for line in block[:20] if (when := scrape_time.from_comment(line)) is not None), None)


def _samples(block: list[str], first: int, damaged: list[int]) -> tuple[list[Sample], float | None]:
    """The samples of a scrape, and its time where samples carry one."""
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415  # heavy, only for scrapes

    samples: list[Sample] = []
    stamp: float | None = None
    for number, line in enumerate(block, start=first):
        if not line.strip() or line.startswith("#") or "_bucket{" in line:
            continue  # histograms are used by sum and count; buckets are nine lines in ten
        try:
            for family in text_string_to_metric_families(line):
                for sample in family.samples:
                    samples.append((sample.name, sample.labels, sample.value))
                    if sample.timestamp is not None:
                        stamp = _seconds(float(sample.timestamp))
        except (ValueError, IndexError):
            damaged.append(number)
    return samples, stamp


def _seconds(timestamp: float) -> float:
    """The text format writes milliseconds, OpenMetrics seconds; the parser divides by a thousand."""
    return timestamp if timestamp > 1e8 else timestamp * 1000
