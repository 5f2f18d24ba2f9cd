"""Diagnoses, comparisons and ledgers as JSON, and their JSON Schema from the same records."""

from typing import Any

import msgspec

from stepline.findings.comparison import Comparison
from stepline.findings.diagnosis import Diagnosis
from stepline.findings.history import History
from stepline.report.bounded import bounded

SCHEMAS: dict[str, type[msgspec.Struct]] = {
    "diagnosis": Diagnosis,
    "comparison": Comparison,
    "history": History,
}


def to_json(result: msgspec.Struct) -> str:
    """Indented JSON; null is not known, never zero. Strings and lists are cut as in every report."""
    return msgspec.json.format(msgspec.json.encode(bounded(result)), indent=2).decode()


def schema(name: str = "diagnosis") -> dict[str, Any]:
    """JSON Schema (2020-12) of what `--json` writes."""
    from stepline.report.described import descriptions  # noqa: PLC0415  # reads sources, only for a schema

    document = msgspec.json.schema(SCHEMAS[name])
    for record, definition in document["$defs"].items():
        told = descriptions().get(record, {})
        for field, content in definition.get("properties", {}).items():
            if field in told:
                content["description"] = told[field]
    document["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    document["title"] = f"stepline {name}"
    return document
