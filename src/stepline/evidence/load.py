"""What was measured from outside: client load levels, rows typed by hand, levers tried."""

from typing import Literal

import msgspec

from stepline.evidence.origin import Origin


class Failures(msgspec.Struct, frozen=True, kw_only=True):
    """Requests that did not end well, each kind counted apart."""

    refused: int = 0
    """No connection."""
    status: dict[int, int] = {}
    """Answers by a status other than 200."""
    closed: int = 0
    """Streams that the server closed before their end."""
    garbled: int = 0
    """Streams with an event that is no JSON of the expected kind."""
    hung: int = 0
    miscounted: int = 0
    """Answers whose final usage contradicts their events."""
    error: int = 0
    """Streams in which the engine reported an error."""
    first: str | None = None
    """The first failure in words, cut to 200 characters."""


class ClientHealth(msgspec.Struct, frozen=True, kw_only=True):
    """What the client knows about itself at this level."""

    cpu_share: float
    """CPU time of the client over wall time, of one core, of its busiest process."""
    us_per_token: float | None
    lag_p50_ms: float
    lag_p99_ms: float
    """How late a timer of the client's loop fired: a bound on the error of every time it reports."""
    late_share: float
    """Share of the time in which a timer was due and had not fired, of the laggiest process: the client then did
    neither read nor send."""
    processes: int = 1


class LoadLevel(msgspec.Struct, frozen=True, kw_only=True):
    """One closed-loop level as a client saw it. Nothing here is a step: queue and prefill are inside."""

    origin: Origin
    concurrency: float | None = None
    request_rate_s: float | None = None
    tok_s: float | None = None
    """Output tokens a second over all streams; None where the level has no steady window."""
    tok_s_per_request: float | None = None
    tpot_ms: float | None = None
    ttft_ms: float | None = None
    itl_ms: float | None = None
    """Gap between tokens; stepline's own client gives the median, which holds no prefill of others."""
    e2e_ms: float | None = None
    requests: int | None = None
    failed: int | None = None
    duration_s: float | None = None
    start_s: float | None = None
    """When the level was measured, in seconds since the epoch."""
    end_s: float | None = None
    input_tokens: float | None = None
    """Mean prompt length."""
    output_tokens: float | None = None
    """Mean output length."""
    asked_output_tokens: float | None = None
    """Output length that the client asked for, where it says so. Two levels of one load may differ in the mean of
    the answers that ended in time."""
    running: float | None = None
    """Running batch where the table itself says so (not the client's concurrency)."""
    queued: float | None = None
    pool_usage: float | None = None
    tool: str | None = None
    decoding: float | None = None
    """Mean number of streams between their first and last token: the running batch as the client can tell it.
    From request times where they are kept, else output tokens a second times the mean TPOT."""
    in_flight: float | None = None
    """Mean number of requests between sending and last token, as measured and not as asked for."""
    chunk_gap_ms: float | None = None
    """Mean gap between chunks of a stream; a chunk may hold several tokens, so this is no step."""
    first_round_ms: float | None = None
    """Longest wait for a first token among the requests that all streams send together at a level's start: a burst
    that no steady load has, and no time to first token of it."""
    ttft_p50_ms: float | None = None
    ttft_p99_ms: float | None = None
    tpot_p50_ms: float | None = None
    tpot_p99_ms: float | None = None
    client_queue_ms: float | None = None
    """Mean wait inside the client before sending, which the tool's latencies leave out."""
    accept_length: float | None = None
    cached_share: float | None = None
    """Share of prompt tokens that the server found in its prefix cache."""
    requests_s: float | None = None
    """Finished requests a second."""
    arm: str | None = None
    """Which configuration of several in one table, as `flag=value`; levels of different arms are of different
    servers and never one sweep."""
    model: str | None = None
    """Model that the client asked for."""
    backend: str | None = None
    """How the client talks: an engine's name, or the name of a protocol that many engines speak."""
    workload: str | None = None
    """Data set or schedule in the client's own word; lengths stand in their own fields."""
    url: str | None = None
    served_with: str | None = None
    """Settings of the server in force at this level, as `name=value`, where the client's tool set them."""
    wrote_s: float | None = None
    """When the client wrote its result, by its own local clock put into UTC: only differences count."""
    failures: Failures | None = None
    health: ClientHealth | None = None
    """The client's own state, where it measured itself."""


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """A step time stated for a running batch, as somebody wrote it down."""

    origin: Origin
    running: float
    step_ms: float | None = None
    tok_s: float | None = None
    context_tokens: float | None = None
    graph: bool | None = None


class LeverTrial(msgspec.Struct, frozen=True, kw_only=True):
    """One change tried on a server, with the same measure before and after."""

    origin: Origin
    lever: str
    running: float | None = None
    concurrency: float | None = None
    before: float
    after: float
    measure: Literal["tok_s", "ms"] = "tok_s"
    value_before: str | None = None
    """Value of the changed setting before, where the table says it; `lever` names the value after."""
    context_tokens: float | None = None
    condition: str | None = None
    """Workload under which both were measured, in the table's own word."""

    @property
    def speedup(self) -> float:
        """How much faster it became: 1.0 is no change."""
        return self.after / self.before if self.measure == "tok_s" else self.before / self.after
