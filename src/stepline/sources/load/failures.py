"""Failed requests, counted by kind."""

from collections import Counter
from collections.abc import Iterable

from stepline.evidence.load import Failures
from stepline.sources.load.answer import Record


def failures(records: Iterable[Record]) -> Failures:
    """Count the records that neither ended well nor were cut by the level's end."""
    failed = sorted(
        (record for record in records if record.end not in ("ok", "cut")), key=lambda record: record.ended_s
    )
    kinds = Counter(record.end for record in failed)
    status = Counter(
        record.status for record in failed if record.end == "status" and record.status is not None
    )
    first = next((f"{record.end}: {record.words or ''}".rstrip(": ")[:200] for record in failed), None)
    return Failures(
        refused=kinds["refused"],
        status=dict(sorted(status.items())),
        closed=kinds["closed"],
        garbled=kinds["garbled"],
        hung=kinds["hung"],
        miscounted=kinds["miscounted"],
        error=kinds["error"],
        first=first,
    )
