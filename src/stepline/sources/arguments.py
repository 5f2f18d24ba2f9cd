"""Start arguments as text by name, however a file spells them: what tells one start from another."""

import re
from collections.abc import Mapping
from typing import Any

from stepline.evidence.origin import Origin
from stepline.evidence.start import Start
from stepline.sources.redact import redact

MAX_ARGUMENTS = 600
"""An engine has about four hundred; more is no list of arguments."""
LONGEST = 400
MODEL = ("served_model_name", "model_path", "model", "model_tag", "model_id", "tokenizer_path")


def flat_arguments(settings: Mapping[str, Any]) -> dict[str, str]:
    """Scalars and lists by name, redacted and cut; nested mappings and states are left out."""
    found: dict[str, str] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) or value is None or name in ("internal_states", "version"):
            continue
        if isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
            continue
        if len(found) < MAX_ARGUMENTS:
            text = ", ".join(str(one) for one in value) if isinstance(value, list | tuple) else str(value)
            found[str(name)] = redact(f"{name}={text}").partition("=")[2][:LONGEST]
    return found


def served_names(arguments: Mapping[str, str]) -> tuple[str, ...]:
    """Names under which the model may be asked for."""
    names = [part for name in MODEL if name in arguments for part in arguments[name].split(", ")]
    return tuple(dict.fromkeys(name for name in names if name))


def port_of(arguments: Mapping[str, str]) -> int | None:
    """The port that the server listens on."""
    port = arguments.get("port", "")
    return int(port) if port.isdigit() and len(port) < 6 else None


def start_of(settings: Mapping[str, Any], origin: Origin) -> Start:
    """The start that a list of settings describes."""
    arguments = flat_arguments(settings)
    return Start(origin=origin, arguments=arguments, names=served_names(arguments), port=port_of(arguments))


def port_in(url: str) -> int | None:
    """The port of a URL that names one."""
    found = re.search(r"^[a-z]+://[^/]*:(\d{1,5})(?:/|$)", url)
    return int(found[1]) if found else None
