"""One level of load: what is to be driven, and what the client saw."""

import msgspec

from stepline.evidence.load import ClientHealth, Failures, LoadLevel
from stepline.evidence.scheduler import DecodeReport


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where the server is. `headers` may hold a key: they are sent and never stored."""

    host: str
    port: int
    prefix: str = ""
    """Path in front of every route, without a trailing slash."""
    tls: bool = False
    headers: tuple[tuple[str, str], ...] = ()


class LevelPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A closed loop of `concurrency` streams, or an open loop of `request_rate_s` Poisson arrivals.

    All streams of a closed loop start together and answer `together_tokens` at least before the first ends,
    so that the batch is full and nobody prefills for that long; first answers then end spread over a further
    `output_tokens`, and every later answer has `output_tokens`.
    """

    concurrency: int | None = None
    request_rate_s: float | None = None
    input_tokens: int
    output_tokens: int
    together_tokens: int = 0
    seconds: float
    """The level ends this long after its start; requests still open are dropped."""
    shared_prefix_tokens: int = 0
    """Opening of every prompt that all share; 0 makes every prompt unique."""
    temperature: float = 0.0
    sampling: dict[str, int | float | bool] = {}
    """Further sampling options of every request, by the engine's own names."""
    seed: int = 0
    """Of the shared opening and of the arrivals' times. Prompts beyond the opening never repeat, whatever it is."""
    vocabulary: int = 1000
    """Prompt ids are drawn below this; an id that the server refuses would fail every request."""
    stall_s: float = 30.0
    """A stream silent for this long is given up and counted as hung."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a running level stands."""

    elapsed_s: float
    in_flight: int
    decoding: int
    """Streams that have had their first token."""
    requests: int
    """Ended well so far."""
    failed: int
    tokens: int


class LevelResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a level: its summary, stretches of constant batch, failures and the client's own state.

    `stretches` are decode reports of instrument "interval" with the streams between their first and last
    token as `running`: only stretches during which no prompt can have been computed, so their `tok_s` gives
    a step. Origins name `file` and the stretch's number.
    """

    level: LoadLevel
    stretches: tuple[DecodeReport, ...]
    failures: Failures
    health: ClientHealth
