"""The diagnosis as JSON, and its JSON Schema from the same records."""

from typing import Any

import msgspec

from stepline.findings.diagnosis import Diagnosis
from stepline.report.bounded import bounded


def to_json(diagnosis: Diagnosis) -> str:
    """Indented JSON; null is not known, never zero. Strings and lists are cut as in every report."""
    return msgspec.json.format(msgspec.json.encode(bounded(diagnosis)), indent=2).decode()


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the diagnosis."""
    document = msgspec.json.schema(Diagnosis)
    document["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    document["title"] = "stepline diagnosis"
    return document
