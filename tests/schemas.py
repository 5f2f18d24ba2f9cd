"""Whether a result, written as `--json` writes it, follows its own JSON Schema."""

import json
from functools import cache

import jsonschema
import msgspec

from stepline.report.jsonout import SCHEMAS, schema, to_json


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema(name))


def follow_schema(result: msgspec.Struct) -> None:
    """Fail where it does not."""
    name = next(name for name, record in SCHEMAS.items() if isinstance(result, record))
    _validator(name).validate(json.loads(to_json(result)))
