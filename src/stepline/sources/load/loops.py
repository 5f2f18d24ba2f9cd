"""The two ways to offer load from one process: streams that each wait for their answer, and Poisson arrivals."""

import asyncio
import gc
import random
import time

import msgspec

from stepline.sources.load.answer import Answer, Counters, Record
from stepline.sources.load.connection import Connection, connect
from stepline.sources.load.dialect import Ask, Dialect
from stepline.sources.load.health import Effort, EffortMeter
from stepline.sources.load.level import Address, LevelPlan
from stepline.sources.load.pace import Pace
from stepline.sources.load.request import asker, head

FIRST_PAUSE_S, LAST_PAUSE_S = 0.1, 1.0
"""Before a stream tries again after a failure, doubling: a server in trouble is not hammered."""
HOPELESS_TRIES = 3
"""Failures of every stream without a single token after which the level ends: it would bring nothing more."""
UNREACHABLE = (OSError, UnicodeError)
"""What opening a connection raises: timeouts and untrusted certificates are OSErrors, impossible names the other."""
SWEEP_S = 0.25
"""Between looks for streams that hang and for a hopeless level: small against any stall worth waiting for."""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a level that one process drives."""

    plan: LevelPlan
    index: int = 0
    of: int = 1

    @property
    def streams(self) -> range:
        """Numbers of this process's streams among all of a closed loop."""
        return range(self.index, self.plan.concurrency or 0, self.of)


class Driven(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What one process saw: times are of the machine's monotonic clock."""

    records: list[Record]
    start_s: float
    end_s: float
    effort: Effort


def first_answer_tokens(plan: LevelPlan, stream: int) -> int:
    """Length of a stream's first answer: `together_tokens`, and its place in the spread after them."""
    streams = plan.concurrency or 1
    return max(1, plan.together_tokens + round(plan.output_tokens * (stream + 1) / streams))


class Loop:
    """Drives one share. Use once: `connect`, then `run`."""

    def __init__(self, address: Address, dialect: Dialect, share: Share, counters: Counters) -> None:
        self._address, self._dialect, self._share = address, dialect, share
        self._plan = share.plan
        self._counters = counters
        self._pace = Pace(counters)
        self._ask = asker(share.plan, as_ids=dialect.takes_ids)
        self._head = head(address, dialect)
        self._answers: list[Answer] = []
        self._busy: set[Connection] = set()
        self._idle: list[Connection] = []

    async def connect(self) -> None:
        """Open a connection for every stream of a closed loop, so that no handshake is in a time to first token.

        Those that fail are tried again, and counted, once the level runs.
        """
        gc.collect()
        tries = [connect(self._address, self._dialect, self._pace) for _ in self._share.streams]
        for got in await asyncio.gather(*tries, return_exceptions=True):
            if isinstance(got, Connection):
                self._idle.append(got)
            elif not isinstance(got, UNREACHABLE):
                raise got

    async def run(self, start_s: float) -> Driven:
        """Load from `start_s` until the plan's end, then drop what is open."""
        tasks: list[asyncio.Task[None]] = []
        # A collection over all that is imported would stop the loop for tens of milliseconds; nothing here makes
        # cycles worth collecting before the level ends.
        collecting = gc.isenabled()
        gc.disable()
        try:
            await asyncio.sleep(start_s - time.perf_counter())
            meter = EffortMeter()
            tasks.append(asyncio.create_task(self._pace.watch()))
            if self._plan.request_rate_s is None:
                work = [self._stream(stream, start_s) for stream in self._share.streams]
            else:
                work = [self._arrivals(start_s, self._plan.request_rate_s / self._share.of)]
            tasks += [asyncio.create_task(each) for each in work]
            await self._watch(start_s + self._plan.seconds)
            end_s = time.perf_counter()
            effort = meter.stop(self._counters.tokens)
            for task in tasks:
                if task.done():
                    task.result()  # nothing a server does ends a task: this is a fault of ours, to be raised
        finally:
            for connection in [*self._busy, *self._idle]:
                connection.drop("cut")
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if collecting:
                gc.enable()
        records = [answer.record() for answer in self._answers if answer.end is not None]
        return Driven(records=records, start_s=start_s, end_s=end_s, effort=effort)

    async def _watch(self, until_s: float) -> None:
        hopeless = HOPELESS_TRIES * max(1, len(self._share.streams))
        while (left := until_s - time.perf_counter()) > 0:
            await asyncio.sleep(min(left, SWEEP_S))
            silent_since = time.perf_counter() - self._plan.stall_s
            for connection in [each for each in self._busy if each.heard_s < silent_since]:
                connection.drop("hung", f"nothing came for {self._plan.stall_s:g} s")
            if self._counters.failed >= hopeless and not self._counters.tokens:
                return

    async def _stream(self, stream: int, start_s: float) -> None:
        tokens, due_s, pause_s = first_answer_tokens(self._plan, stream), start_s, FIRST_PAUSE_S
        while True:
            answer = await self._request(stream, self._ask(tokens), due_s)
            if answer.end == "ok":
                pause_s = FIRST_PAUSE_S
            else:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LAST_PAUSE_S)
            tokens, due_s = self._plan.output_tokens, time.perf_counter()

    async def _arrivals(self, start_s: float, rate_s: float) -> None:
        gaps = random.Random(f"{self._plan.seed}/{self._share.index}")  # noqa: S311 - load, not cryptography
        due_s, requests = start_s, set[asyncio.Task[Answer]]()
        try:
            while True:
                due_s += gaps.expovariate(rate_s)
                await asyncio.sleep(due_s - time.perf_counter())
                request = asyncio.create_task(self._request(-1, self._ask(self._plan.output_tokens), due_s))
                requests.add(request)
                request.add_done_callback(requests.discard)
        finally:
            for request in requests:
                request.cancel()

    async def _request(self, stream: int, ask: Ask, due_s: float) -> Answer:
        answer = Answer(ask, stream, due_s, self._counters)
        self._answers.append(answer)
        body = self._dialect.body(ask)
        request = b"%b%d\r\n\r\n%b" % (self._head, len(body), body)
        while answer.end is None:
            try:
                connection = self._take_idle() or await connect(self._address, self._dialect, self._pace)
            except UNREACHABLE as error:
                answer.close("refused", time.perf_counter(), str(error) or type(error).__name__)
                break
            if connection.alive:
                await self._exchange(connection, request, answer)
            else:
                answer.close("closed", time.perf_counter(), "the server closed the connection at once")
        return answer

    async def _exchange(self, connection: Connection, request: bytes, answer: Answer) -> None:
        done = asyncio.get_running_loop().create_future()
        self._busy.add(connection)
        try:
            connection.send(request, answer, done)
            await done
        finally:
            self._busy.discard(connection)
            if connection.alive:
                self._idle.append(connection)

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.alive:
                return connection
        return None
