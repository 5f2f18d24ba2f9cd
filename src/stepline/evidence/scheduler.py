"""What the engine's scheduler reports about itself, line by line.

`seq` orders all scheduler records of a run; `time_s` is seconds since the epoch in the log's own time zone,
rounded as the log rounds (a log that prints no year is put into 1972: only differences count there). `dp`
and `pp` are the reporting rank where the engine has several.
"""

from typing import Literal

import msgspec

from stepline.evidence.origin import Origin


class DecodeReport(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One periodic decode line: the state at print time and the mean rate since the previous decode line.

    `instrument` says what the line measures, and so what may follow from it:
    "window": one line per fixed number of decode steps, rates since the last one (SGLang);
    "interval": one line per fixed wall time, `running` and `queued` at the instant of printing, rates over
    all of it, ramps and prefills included (vLLM's ten seconds);
    "step": one line per forward, `step_ms` its wall time.
    """

    seq: int
    origin: Origin
    time_s: float | None = None
    dp: int | None = None
    pp: int | None = None
    running: int
    queued: int | None = None
    pool_tokens: int | None = None
    pool_usage: float | None = None
    accept_length: float | None = None
    graph: bool | None = None
    tok_s: float | None = None
    retracted: int | None = None
    transferring: int | None = None
    preallocated: int | None = None
    forward_busy: float | None = None
    step_ms: float | None = None
    instrument: Literal["window", "interval", "step"] = "window"
    windows: int = 1
    """Windows of one kind that this record stands for: `running`, rank and graph are equal in all,
    `tok_s` and `accept_length` are such that running * accept_length / tok_s is the mean step, the rest are
    means, `time_s` is the last one's and `origin` the first one's."""
    ranks_summed: int = 1
    """Data-parallel ranks that this one line adds up; running over throughput is still one rank's step."""
    prefill_tokens: int | None = None
    """Prompt tokens computed in the same forward, where the line is one forward."""
    prefill_tok_s: float | None = None
    """Prompt tokens a second over the same interval, where the line says so."""
    prefix_hit_share: float | None = None
    deferred: int | None = None
    """Requests that wait for something other than room in the batch, such as a transfer of their cache."""
    accept_rate: float | None = None
    """Accepted drafts per drafted token as the engine defines it; the definition changed between releases."""


class PrefillReport(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One prefill batch as the scheduler admitted it."""

    seq: int
    origin: Origin
    time_s: float | None = None
    dp: int | None = None
    pp: int | None = None
    new_sequences: int
    new_tokens: int
    cached_tokens: int | None = None
    running: int | None = None
    queued: int | None = None
    pending_tokens: int | None = None
    pool_usage: float | None = None
    inflight: int | None = None
    graph: bool | None = None
    batches: int = 1
    """Prefill batches that this record stands for; sequences and tokens are their sums."""
    bootstrapping: int | None = None
    """Requests waiting for the decode side's handshake (prefill of a disaggregated server)."""
    tok_s: float | None = None


EventKind = Literal[
    "ready",
    "shutdown",
    "profile-start",
    "profile-end",
    "retraction",
    "out-of-memory",
    "jit-compile",
    "crash",
    "disconnect",
    "gpu-fault",
]


class SchedulerEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened once; `amount` is the number the line carries (requests retracted)."""

    seq: int
    origin: Origin
    kind: EventKind
    text: str
    time_s: float | None = None
    amount: float | None = None
    repeats: int = 1
    """Events of this kind that this one stands for; `amount` is their sum."""


class GraphUse(msgspec.Struct, frozen=True, kw_only=True):
    """How often a forward of this size ran, and in which graph mode, since the previous table."""

    origin: Origin
    tokens: int
    padded_tokens: int
    mode: Literal["full", "piecewise", "none"]
    count: int


class TransferReport(msgspec.Struct, frozen=True, kw_only=True):
    """One transfer of KV cache between servers, or the rate of them over an interval."""

    origin: Origin
    time_s: float | None = None
    duration_ms: float | None = None
    bytes_s: float | None = None


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """A start-up remark about a fallback or a disabled feature. A notice is never a cause by itself."""

    origin: Origin
    text: str
    topic: Literal["fallback", "untuned", "disabled", "slow", "other"]
    repeats: int = 1
