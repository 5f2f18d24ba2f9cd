"""The diagnosis as JSON, and its JSON Schema from the same records."""

from typing import Any

import msgspec

from stepline.findings.diagnosis import Diagnosis


def to_json(diagnosis: Diagnosis) -> str:
    """Indented JSON; null is not known, never zero."""
    return msgspec.json.format(msgspec.json.encode(diagnosis), indent=2).decode()


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the diagnosis."""
    document = msgspec.json.schema(Diagnosis)
    document["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    document["title"] = "stepline diagnosis"
    return document
