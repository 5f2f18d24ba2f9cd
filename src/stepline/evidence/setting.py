"""What somebody said of a setting: the engine in its log or over HTTP, or whoever started it."""

from typing import Any, Literal

import msgspec

from stepline.evidence.origin import Origin

Speaker = Literal["log", "server_info", "command", "environment"]
"""Who said it; the engine's last word in its log stands over `/server_info`, that over who started it."""


class SettingSaid(msgspec.Struct, frozen=True, kw_only=True):
    """One value of one setting, by its name in the catalogue of `facts/settings`."""

    engine: str
    """Whose catalogue the name stands in; `environment` for what is of no engine."""
    name: str
    value: Any = None
    """As JSON has it. None is a value too, unless `changed` is true and the engine did not say to what."""
    by: Speaker
    origin: Origin
    changed: bool = False
    """The engine says that it changed the setting of its own accord."""
    asked: Any = None
    """What the engine says that it was asked for, where it changed it; None where it does not say."""
    words: str | None = None
    """The engine's own words for a change, with keys taken out."""
