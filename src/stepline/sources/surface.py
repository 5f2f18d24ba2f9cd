"""What a live server was found to be and to offer; each engine has one function that finds it."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from stepline.sources.http import Http
from stepline.sources.load.dialect import Dialect


class ProfileRoute(msgspec.Struct, frozen=True, kw_only=True):
    """How `POST /start_profile` takes a bounded trace."""

    body: Callable[[str, int], dict[str, Any]] | None
    """From a folder on the server's disk and a number of steps; None where both are fixed at launch."""
    folder: str | None = None
    """Where the server writes when the request cannot say."""
    stops_itself: bool
    """False: `POST /stop_profile` has to end it."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A server that was recognised. `files` are its answers, kept as they came under these names."""

    engine: str | None
    """None for a server that speaks the OpenAI routes and names no engine."""
    version: str | None = None
    model: str | None = None
    max_context_tokens: int | None = None
    dialect: Dialect
    metrics: bool = False
    files: dict[str, bytes] = {}
    profile: ProfileRoute | None = None
    start_mark: bytes | None = None
    """In the line of its log that tells its settings, once a start."""
    flush_path: str | None = None
    busy: Callable[[Http], int | None] | None = None
    """Requests running or waiting now, by a route other than /metrics."""
    flags: Mapping[str, str] = {}
    """Of its command line, by the setting of `ServerFacts` that each sets to a number."""
    lacks: tuple[str, ...] = ()
    """What the server does not offer, each with the way to get it."""


MAX_NAME = 300
"""No honest name is longer."""


def first_model(http: Http) -> Mapping[str, Any] | None:
    """The first entry of `/v1/models`, or None where there is no such list."""
    listed = http.get("/v1/models").json()
    data = listed.get("data") if isinstance(listed, Mapping) else None
    first = data[0] if isinstance(data, list) and data else None
    name = first.get("id") if isinstance(first, Mapping) else None
    return first if isinstance(name, str) and len(name) <= MAX_NAME else None


def text_or_none(value: object) -> str | None:
    """A reply's field as text, cut to a length that no honest one reaches."""
    return value[:MAX_NAME] if isinstance(value, str) and value else None


def count_or_none(value: object) -> int | None:
    """A reply's field as a count."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
