"""One request as the client saw it: when it was due and sent, when its tokens came, and how it ended."""

from array import array
from collections.abc import Callable
from typing import Literal

import msgspec

from stepline.sources.load.dialect import Ask, Delta

End = Literal["ok", "cut", "refused", "status", "closed", "garbled", "hung", "miscounted", "error"]
"""`ok` ended well, `cut` was dropped at the level's end; the rest are the kinds of `Failures`."""

Count = Literal["running", "ids", "events"]
"""What an answer's tokens are counted by: the engine's running count, ids of tokens, or events with text."""
SPARE_TOKENS = 16
"""Tokens beyond those asked for that are no contradiction: accepted drafts may run over the end."""
SPLIT_EVENTS = 4
"""Events with text beyond the tokens of an answer that are no contradiction: a parser may split one token's text
where reasoning, tool call and answer meet."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A request that is over. Times are seconds of the machine's monotonic clock, one for all processes."""

    stream: int
    """Which of the level's streams sent it; -1 in an open loop."""
    asked: int
    due_s: float
    sent_s: float | None
    ended_s: float
    end: End
    times: bytes
    """When the chunks with tokens were read: doubles, never falling."""
    tokens: bytes
    """Tokens of each chunk: doubles, because a count known only in total is spread evenly."""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    status: int | None = None
    words: str | None = None


class Counters(msgspec.Struct, tag=True):
    """Running totals of a level in one process, for progress and for nothing else."""

    in_flight: int = 0
    decoding: int = 0
    requests: int = 0
    failed: int = 0
    tokens: int = 0


class Answer:
    """A request in flight. `take` hears each event; the first `close` decides how it ended."""

    __slots__ = (
        "_by",
        "_counters",
        "_last_s",
        "_longest",
        "_on_end",
        "_usage",
        "ask",
        "cached_tokens",
        "due_s",
        "end",
        "ended_s",
        "finish",
        "prompt_tokens",
        "sent_s",
        "status",
        "stream",
        "text_events",
        "times",
        "tokens",
        "total",
        "words",
    )

    def __init__(self, ask: Ask, stream: int, due_s: float, counters: Counters) -> None:
        self.ask, self.stream, self.due_s = ask, stream, due_s
        self.sent_s: float | None = None
        self.ended_s: float | None = None
        self.end: End | None = None
        self.words: str | None = None
        self.status: int | None = None
        self.finish: str | None = None
        self.prompt_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.times = array("d")
        self.tokens = array("d")
        self.total = 0
        self.text_events = 0
        self._by: Count | None = None
        self._last_s: float | None = None
        self._longest = ask.output_tokens + SPARE_TOKENS
        self._usage: int | None = None
        self._counters = counters
        self._on_end: Callable[[], None] | None = None

    def sent(self, now_s: float, on_end: Callable[[], None]) -> None:
        """The request left; `on_end` is called once, when it is over."""
        self.sent_s, self._on_end = now_s, on_end
        self._counters.in_flight += 1

    def unsent(self) -> None:
        """The connection was gone before the request reached anybody: it may be sent again."""
        self.sent_s = None
        self._counters.in_flight -= 1
        if self._on_end is not None:
            self._on_end()

    def rise(self, tokens: int, now_s: float) -> bool:
        """Take a running count of an event with text that says nothing else; False leaves everything to `take`.

        What `take` does with such an event, without its other cases.
        """
        more = tokens - self.total
        if more <= 0 or self._by != "running" or tokens > self._longest:
            return False
        self.text_events += 1
        if self._last_s == now_s:  # one read is one chunk, as in `take`
            self.tokens[-1] += more
        else:
            self.times.append(now_s)
            self.tokens.append(more)
            self._last_s = now_s
        self.total = tokens
        self._counters.tokens += more
        return True

    def take(self, delta: Delta, now_s: float) -> None:
        """Count what an event says; an event that contradicts those before it ends the answer."""
        if delta.error is not None:
            self.close("error", now_s, delta.error)
            return
        if self._by is None:
            self._by = _best_count(delta)
        if delta.text:
            self.text_events += 1
        if self._by == "running":
            more = 0 if delta.tokens is None else delta.tokens - self.total
        else:
            more = self._uncounted(delta)
        if more > 0:
            if self._last_s == now_s:  # one read is one chunk: its parts have no times of their own
                self.tokens[-1] += more
            else:
                if self._last_s is None:
                    self._counters.decoding += 1
                self.times.append(now_s)
                self.tokens.append(more)
                self._last_s = now_s
            self.total += more
            self._counters.tokens += more
            if self.total > self._longest:
                self.close(
                    "miscounted", now_s, f"{self.total} tokens where {self.ask.output_tokens} were asked for"
                )
        elif more < 0:
            self.close("miscounted", now_s, f"a count fell from {self.total} to {self.total + more} tokens")
        if delta.finish is not None:
            self.finish = delta.finish
        if delta.prompt_tokens is not None:
            self.prompt_tokens = delta.prompt_tokens
        if delta.cached_tokens is not None:
            self.cached_tokens = delta.cached_tokens

    def _uncounted(self, delta: Delta) -> int:
        """New tokens of an event of an answer without a running count; a count that comes is its usage."""
        if delta.tokens is not None:
            self._usage = delta.tokens
        if self._by == "ids":
            return delta.more_tokens or 0
        return 1 if delta.text else 0

    def finished(self, now_s: float) -> None:
        """The server ended the response in due form."""
        counted = self.total if self._usage is None else self._usage
        if self.finish is None and counted < self.ask.output_tokens:
            self.close("closed", now_s, f"the stream ended after {counted} tokens without a finish")
        elif self._contradicted(counted):
            seen = f"{self.total} tokens" if self._by == "ids" else f"{self.text_events} events with text"
            self.close("miscounted", now_s, f"usage of {counted} tokens after {seen}")
        elif counted > self._longest:
            self.close(
                "miscounted",
                now_s,
                f"usage of {counted} tokens where {self.ask.output_tokens} were asked for",
            )
        else:
            self._spread(counted)
            self.close("ok", now_s)

    def _contradicted(self, counted: int) -> bool:
        if self._by == "ids":
            return counted != self.total
        return self.text_events > counted + SPLIT_EVENTS or (self.text_events > 0 and not counted)

    def _spread(self, counted: int) -> None:
        """Events hold as many tokens as the usage at the end says, evenly: no event says how many it holds."""
        if self._by == "events" and counted != self.total:
            each = counted / self.total
            self.tokens = array("d", (tokens * each for tokens in self.tokens))
            self.total = counted

    def close(self, end: End, now_s: float, words: str | None = None) -> None:
        """The answer is over; only the first call counts."""
        if self.end is not None:
            return
        self.end, self.ended_s = end, now_s
        self.words = words[:200] if words else None
        if self.sent_s is not None:
            self._counters.in_flight -= 1
        if self.times:
            self._counters.decoding -= 1
        self._counters.requests += end == "ok"
        self._counters.failed += end not in ("ok", "cut")
        if self._on_end is not None:
            self._on_end()

    def record(self) -> Record:
        """The answer once it is over."""
        if self.end is None or self.ended_s is None:
            raise RuntimeError("this answer is still open")
        return Record(
            stream=self.stream,
            asked=self.ask.output_tokens,
            due_s=self.due_s,
            sent_s=self.sent_s,
            ended_s=self.ended_s,
            end=self.end,
            times=self.times.tobytes(),
            tokens=self.tokens.tobytes(),
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            status=self.status,
            words=self.words,
        )


def _best_count(delta: Delta) -> Count | None:
    """The best count that an event gives; None where it holds no tokens."""
    if delta.tokens:
        return "running"
    if delta.more_tokens:
        return "ids"
    return "events" if delta.text else None
