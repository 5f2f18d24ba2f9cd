"""What stepline can read of one engine, as one record: its log, its metrics, its documents, its live routes."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec

from stepline.evidence.metrics import EngineMetrics
from stepline.evidence.origin import Origin
from stepline.evidence.run import FileKind, Run
from stepline.sources.logs.logbook import LogBook
from stepline.sources.logs.template import Templates

if TYPE_CHECKING:
    from stepline.sources.http import Http
    from stepline.sources.surface import Found

Sample = tuple[str, Mapping[str, str], float]
"""A Prometheus sample: its name, its labels, its value."""


class LogReader(Protocol):
    """Reads the log of one engine, line by line; one object a file."""

    MARKS: ClassVar[tuple[str, ...]]
    """A line without any of these, and that is no remark, tells it nothing."""
    TEMPLATES: ClassVar[Templates | None]
    """Reads many lines at a time; None where no log of this engine grows so long."""
    book: LogBook

    def __init__(self, file: str) -> None: ...

    @staticmethod
    def recognises(head: bytes) -> bool:
        """True when the opening bytes hold a line only this engine writes."""

    def feed(self, number: int, line: str) -> None:
        """Take one line."""

    def finish(self) -> Run:
        """Everything read."""


class MetricsReader(msgspec.Struct, frozen=True):
    """Reads what the engine answers on `/metrics`."""

    prefix: str
    """Of the names of all its metrics, and of no other engine's."""
    to_metrics: Callable[[Iterable[Sample], Origin, float | None], EngineMetrics]
    """From the samples of one scrape, where they were read, and when (Unix seconds; None where unknown)."""


class DocumentReader(msgspec.Struct, frozen=True):
    """Reads one kind of JSON document that the engine answers."""

    kind: FileKind
    recognises: Callable[[object], bool]
    read: Callable[[Any, str], Run]
    """From a document that it recognises and the name of its file."""


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """One engine. What it does not have, or what nobody has taught stepline yet, is None or empty."""

    name: str
    """As `ServerFacts.engine` has it."""
    log: type[LogReader] | None = None
    metrics: MetricsReader | None = None
    documents: tuple[DocumentReader, ...] = ()
    """Its settings as a route or the load generator keeps them, and metrics that are no Prometheus text."""
    find: "Callable[[Http], Found | None] | None" = None
    """Recognises a running server by its own routes. It imports what speaks HTTP only when it is called."""
