"""Closed-loop load on a virtual clock: the same levels and the same report as a client of a real server gives."""

import random
from collections.abc import Callable
from typing import Any

import msgspec

from stepline.lab.sim.captures.sweep import Level, Seen, Sent, row
from stepline.lab.sim.prompt import BLOCK, Prompt, Request
from stepline.lab.sim.virtual import Virtual

_THINK_S = 0.0004
"""From a stream's last token to its next request: what an asyncio client needs."""
_MOST_SHARED = 65_536 // BLOCK
_MOST_LONGER = 5.0
"""Times its seconds after which a level waits no longer for the shortened first answers to be over."""
_LOOK_S = 0.5
_STUCK_S = 4.0
"""When none has begun to decode for this long the pool or a cap holds the others back."""


class VirtualClient:
    """Sends one level after another; `epoch_s` is the Unix time of second 0 of the engine's clock."""

    def __init__(self, virtual: Virtual, *, seed: int, epoch_s: float) -> None:
        self._virtual, self._epoch = virtual, epoch_s
        self._random = random.Random(seed)  # noqa: S311 - load, not cryptography
        self._common = tuple(self._random.getrandbits(60) for _ in range(_MOST_SHARED))
        self._open: dict[str, Request] = {}
        self._sent = 0

    def level(self, level: Level) -> dict[str, Any]:
        """Drive one level and return its row of `sweep.json`.

        Where requests queue, the shortened first answers of all streams can fill the whole level, and what is
        measured then is a load of short answers. So a level with a ramp goes on until they are over and measures as
        long as it would have.
        """
        start = self._virtual.now_s
        seen = Seen()

        def again(done_s: float) -> None:
            prompt = self._prompt(level.input_tokens, level.shared_prefix_tokens)
            self._send(seen, prompt, level.output_tokens, done_s + _THINK_S, again=again)

        for index in range(level.concurrency):
            tokens = max(1, level.output_tokens * (index + 1) // level.concurrency)
            prompt = self._prompt(level.input_tokens, level.shared_prefix_tokens)
            self._send(seen, prompt, tokens, start, again=again, first_round=True)
        due_s = self._run(level, start + level.ramp * level.seconds, start)
        first = seen.requests[: level.concurrency]
        most_s = start + _MOST_LONGER * level.seconds
        while level.ramp and self._virtual.now_s < most_s and not all(sent.done for sent in first):
            due_s = self._run(level, self._virtual.now_s + _LOOK_S, due_s)
        from_s = self._virtual.now_s
        end = from_s + (1 - level.ramp) * level.seconds
        self._run(level, end, due_s)
        self.let_go()
        measured = msgspec.structs.replace(level, ramp=(from_s - start) / (end - start))
        return row(measured, seen, self._epoch + start, self._epoch + end) | {"client_cpu_share": 0.0}

    def _run(self, level: Level, until_s: float, due_s: float) -> float:
        """Serve until then and send what is due beside the load; when the next of that is due."""
        while level.beside is not None and due_s < until_s:
            self._virtual.run(due_s)
            prompt = self._prompt(level.beside.input_tokens, 0)
            self._send(Seen(), prompt, level.beside.output_tokens, due_s)
            due_s += level.beside.every_s
        self._virtual.run(until_s)
        return due_s

    def hold(self, streams: int, input_tokens: int, seconds: float) -> None:
        """Keep `streams` endless answers going for a while and until all decode, as one does under a profiler."""
        for _ in range(streams):
            self._send(Seen(), self._prompt(input_tokens, 0), 8192, self._virtual.now_s)
        self._virtual.run(self._virtual.now_s + seconds)
        waiting, left = streams + 1, sum(not request.made for request in self._open.values())
        while 0 < left < waiting:
            self._virtual.run(self._virtual.now_s + _STUCK_S)
            waiting, left = left, sum(not request.made for request in self._open.values())

    def let_go(self) -> None:
        """Give up everything that is open."""
        for request in self._open.values():
            self._virtual.engine.abort(request)
        self._open.clear()

    def _send(
        self,
        seen: Seen,
        prompt: Prompt,
        output_tokens: int,
        at_s: float,
        *,
        again: Callable[[float], None] | None = None,
        first_round: bool = False,
    ) -> None:
        self._sent += 1
        request = Request(f"{self._sent:032x}", prompt, output_tokens, at_s)
        sent = Sent(first_round=first_round, sent_s=self._epoch + at_s)
        seen.requests.append(sent)
        self._open[request.rid] = request

        def take(_: Request, new: int, out_s: float, made: int, last: bool) -> None:  # noqa: FBT001
            now = self._epoch + out_s
            gap = None if sent.last_s is None else now - sent.last_s
            if sent.first_s is None:
                sent.first_s, sent.first_tokens, sent.cached = now, made, request.cached
            seen.chunks.append((now, new, gap))
            sent.last_s, sent.tokens = now, made
            if last:
                sent.done = True
                del self._open[request.rid]
                if again:
                    again(out_s)

        request.owner = take
        self._virtual.submit(request)

    def _prompt(self, tokens: int, shared: int) -> Prompt:
        """Blocks of the common prefix, then blocks that no other prompt has."""
        own = tokens // BLOCK - shared // BLOCK
        draw = self._random.getrandbits
        return Prompt(tokens, self._common[: shared // BLOCK] + tuple(draw(60) for _ in range(own)))
