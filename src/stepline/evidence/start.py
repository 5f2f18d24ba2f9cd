"""Start: what one file says of the server process that it is about, beyond the settings that rules use."""

import msgspec

from stepline.evidence.origin import Origin


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """One start of a server as a file tells it; None and empty mean not said."""

    origin: Origin | None = None
    """The line or file that tells it."""
    arguments: dict[str, str] = {}
    """Start arguments by the engine's own names, secrets redacted; nested ones by their outermost name."""
    environment: dict[str, str] = {}
    """Environment variables that engines and their libraries read, secrets redacted."""
    source: str | None = None
    """Pod, container or unit that wrote the lines, where a collector's prefix names it."""
    process: str | None = None
    """Process of the API server, as its lines name it."""
    names: tuple[str, ...] = ()
    """Names under which the model is served or loaded."""
    port: int | None = None
    process_start_s: float | None = None
    """When the process began, in seconds since the epoch, as its metrics say."""
    first_s: float | None = None
    last_s: float | None = None
    """First and last time that the file prints, by its own clock."""
    capture: str | None = None
    """The recording that the file says it belongs to: `stepline record` writes all files of one start."""
