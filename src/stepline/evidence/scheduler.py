"""What the engine's scheduler reports about itself, line by line.

`seq` orders all scheduler records of a run; `time_s` is seconds since the epoch in the log's own time zone,
rounded as the log rounds. `dp` and `pp` are the reporting rank where the engine has several.
"""

from typing import Literal

import msgspec

from stepline.evidence.origin import Origin


class DecodeReport(msgspec.Struct, frozen=True, kw_only=True):
    """One periodic decode line: the state at print time and the mean rate since the previous decode line."""

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


class PrefillReport(msgspec.Struct, frozen=True, kw_only=True):
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
]


class SchedulerEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened once; `amount` is the number the line carries (requests retracted)."""

    seq: int
    origin: Origin
    kind: EventKind
    text: str
    time_s: float | None = None
    amount: float | None = None


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """A start-up remark about a fallback or a disabled feature. A notice is never a cause by itself."""

    origin: Origin
    text: str
    topic: Literal["fallback", "untuned", "disabled", "slow", "other"]
    repeats: int = 1
