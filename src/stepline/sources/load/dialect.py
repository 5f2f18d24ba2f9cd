"""What the load client and an engine's adapter agree on: how a request is written and how an event is read."""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class Ask(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One request: a prompt as token ids, or as text where the server takes none, and how much to answer."""

    prompt_ids: Sequence[int] = ()
    prompt_text: str = ""
    output_tokens: int
    """The answer is to be exactly this long wherever the engine can be told so."""
    temperature: float = 0.0
    sampling: dict[str, int | float | bool] = {}
    """Further sampling options, by the engine's own names."""


class Delta(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one event of a stream says. None where it does not say."""

    tokens: int | None = None
    """Tokens answered so far, the engine's own count."""
    more_tokens: int | None = None
    """Tokens in this event alone, from their ids; for engines that give no running count."""
    text: bool = False
    """The event carries answered text: without any count it stands for at least one token."""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    finish: str | None = None
    """Why the answer ended: `length`, `stop`, ...; in the last event only."""
    error: str | None = None
    """The engine's own error inside a stream that opened well."""


class Dialect(Protocol):
    """How one kind of server is asked for a streamed answer."""

    name: str
    path: str
    """Of the POST route, from the server's root."""
    takes_ids: bool
    exact: bool
    """Its events say how many tokens they hold; else events can only be counted."""

    def body(self, ask: Ask) -> bytes:
        """The JSON body of the request."""
        ...

    def count(self, event: bytes) -> int | None:
        """The tokens so far of an event that says nothing else of interest; None for any other, which `read` takes.

        Nearly all events are of this kind, and each is worth a microsecond. Raises as `read` does.
        """
        ...

    def read(self, event: bytes) -> Delta | None:
        """The payload of one `data:` line; None for one that says nothing, such as `[DONE]`.

        Raises:
            msgspec.DecodeError: the payload is no JSON of the expected kind.
        """
        ...
