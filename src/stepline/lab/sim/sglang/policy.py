"""SGLang's scheduling as of 0.5.16: prefill first, admission by a guess of answer lengths, retraction.

Prefill and decode do not share a forward. A prompt is admitted when its tokens and its whole answer fit beside
what the running requests will probably still need: their remaining maximum times a ratio that starts at 0.7
and falls to 0.14 of that in 600 steps. When the guess was wrong and the pool is full, the requests with the
shortest answers are thrown back and computed again later (`srt/managers/schedule_policy.py`, `schedule_batch.py`).
"""

from stepline.lab.sim.forward import Forward, Made
from stepline.lab.sim.prompt import Request
from stepline.lab.sim.scheduler import Scheduler
from stepline.lab.sim.settings import Settings
from stepline.lab.sim.world import Work, World

_RATIO, _RATIO_FLOOR = 0.7, 0.14
_CLIP_NEW = 4096  # of an answer's maximum, more is never reserved
_STEPS_AFTER_RETRACTION = 20  # room that a retraction makes for those who stay

Part = tuple[Request, int, int]
"""A request, its new tokens in this prefill, and its tokens from the prefix cache."""


class SglangScheduler(Scheduler):
    """One scheduler process."""

    def __init__(self, settings: Settings, world: World) -> None:
        super().__init__(settings, world)
        self.chunked: Request | None = None
        self._ratio_start = min(1.0, _RATIO * settings.conservativeness)
        self._ratio_least = self._ratio_start * _RATIO_FLOOR
        self._ratio_fall = (self._ratio_start - self._ratio_least) / settings.ratio_decay_steps
        self.ratio = self._ratio_start

    @property
    def busy(self) -> bool:
        """There is something to do."""
        return super().busy or self.chunked is not None

    def abort(self, request: Request) -> None:
        """Drop a request wherever it is."""
        if request is self.chunked:
            self.chunked = None
        super().abort(request)

    def step(self, now: float) -> Forward | None:
        """Prefill whatever may be admitted, else decode."""
        batch = self._admit(now)
        if batch:
            return self._prefill(now, batch)
        return self._decode(now) if self.running else None

    def _admit(self, now: float) -> list[Part]:
        """The next prefill; a last part that is cut belongs to the chunked request."""
        budget = self.settings.chunk_tokens
        batch: list[Part] = []
        if self.chunked:
            request, self.chunked = self.chunked, None
            budget -= self._take(request, budget, 0, batch)
        while self.waiting and self.chunked is None and budget > 0:
            request = self.waiting[0]
            if len(self.running) + len(batch) >= self.settings.max_running:
                break
            cached = self.cache.match(request.prompt) if not request.made else 0
            need = request.wanted - cached + min(request.max_new - request.made, _CLIP_NEW)
            reserved = sum(min(each.max_new - each.made, _CLIP_NEW) * self.ratio for each in self.running)
            reserved += sum(min(each.max_new, _CLIP_NEW) for each, _, _ in batch)
            alone = not self.running and not batch
            if need + reserved >= self.free and not alone:
                break
            self.waiting.popleft()
            if request.admitted_s is None:
                request.admitted_s, request.cached = now, cached
            self.hold(request, cached)
            budget -= self._take(request, budget, cached, batch)
        return batch

    def _take(self, request: Request, budget: int, cached: int, batch: list[Part]) -> int:
        tokens = min(request.wanted - request.held, budget)
        batch.append((request, tokens, cached))
        self.hold(request, tokens)
        if request.held < request.wanted:
            self.chunked = request
        return tokens

    def _prefill(self, now: float, batch: list[Part]) -> Forward:
        before = len(self.running)
        parts = tuple((tokens, request.held - tokens) for request, tokens, _ in batch)
        cost = self.world.price(Work(parts=parts))
        end_s = now + cost.wall_s
        made: Made = []
        finished = []
        for request, _, _ in batch:
            if request is self.chunked:
                continue
            self.running.append(request)
            if self.emit(request, end_s, made, verified=False):
                finished.append(request)
        self.finish(finished)
        new = sum(tokens for _, tokens, _ in batch)
        return Forward(
            kind="prefill",
            start_s=now,
            end_s=end_s,
            cost=cost,
            batch=0,
            running_before=before,
            graph=self.settings.prefill_graphs and new <= self.settings.chunk_tokens,
            made=made,
            finished=finished,
            new_sequences=len(batch),
            new_tokens=new,
            repeated_tokens=sum(tokens for request, tokens, _ in batch if request.retractions),
            cached_tokens=sum(cached for _, _, cached in batch),
            pending_tokens=self.chunked.wanted - self.chunked.held if self.chunked else 0,
            used_tokens=self.used,
            queued=len(self.waiting),
            ratio=self.ratio,
        )

    def _decode(self, now: float) -> Forward:
        ratio_before = self.ratio
        retracted = self._make_room()
        spec = self.settings.speculation
        graph = len(self.running) <= max(self.settings.graph_sizes, default=0)
        live = sum(request.held + 1 for request in self.running)
        cost = self.world.price(Work(decoding=len(self.running), live_tokens=live, graph=graph))
        end_s, batch = now + cost.wall_s, len(self.running)
        made: Made = []
        finished = [request for request in list(self.running) if self.emit(request, end_s, made)]
        self.grow(made)
        self.finish(finished)
        if not retracted:
            self.ratio = max(self._ratio_least, self.ratio - self._ratio_fall)
        return Forward(
            kind="decode",
            start_s=now,
            end_s=end_s,
            cost=cost,
            batch=batch,
            running_before=batch,
            graph=graph,
            made=made,
            finished=finished,
            retracted=retracted,
            used_tokens=self.used,
            queued=len(self.waiting),
            live_tokens=live,
            ratio=self.ratio,
            ratio_before=ratio_before,
            drafted=batch * (spec.draft_tokens - 1) if spec else 0,
        )

    def _make_room(self) -> list[Request]:
        """Throw requests back until the others have room for a step; the shortest answers go first."""
        per_step = self.settings.speculation.draft_tokens if self.settings.speculation else 1
        if self.free >= per_step * len(self.running):
            return []
        order = sorted(self.running, key=lambda r: (r.made, -r.prompt.tokens), reverse=True)
        retracted: list[Request] = []
        while len(order) > 1 and self.free < _STEPS_AFTER_RETRACTION * per_step * len(order):
            request = order.pop()
            self.running.remove(request)
            self.release(request)
            request.retractions += 1
            retracted.append(request)
        self.waiting.extendleft(reversed(retracted))
        made = sum(request.made + _STEPS_AFTER_RETRACTION for request in self.running)
        self.ratio = min(1.0, made / sum(request.max_new for request in self.running))
        return retracted
