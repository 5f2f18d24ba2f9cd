"""vLLM's scheduling as of 0.20 (`v1/core/sched/scheduler.py`): one token budget, decode first, prompts beside it.

Each step gives every running request its next token, then spends what is left of `max_num_batched_tokens` on
prompts. Room in the pool is taken as it is needed; when there is none, the request that came last is thrown out
and computed again.
"""

from stepline.lab.sim.forward import Forward, Made
from stepline.lab.sim.prompt import Request
from stepline.lab.sim.scheduler import Scheduler
from stepline.lab.sim.world import Work


class VllmScheduler(Scheduler):
    """One engine core."""

    queried_tokens = 0
    """Prompt tokens looked up in the prefix cache so far."""

    def step(self, now: float) -> Forward | None:
        """Schedule decode tokens and prompt chunks into one forward."""
        budget = self.settings.chunk_tokens
        per_step = self.settings.speculation.draft_tokens if self.settings.speculation else 1
        decoding: list[Request] = []
        parts: list[tuple[Request, int]] = []
        preempted: list[Request] = []
        for request in list(self.running):
            if request in preempted:
                continue
            need = request.wanted - request.held
            prompt = need > 1  # a request that decodes lacks only the token that it made last
            tokens = min(need, budget) if prompt else per_step
            if tokens > budget or not self._room(tokens, request, preempted, decoding, parts):
                continue
            budget -= tokens
            if prompt:
                self.hold(request, tokens)
                parts.append((request, tokens))
            else:
                decoding.append(request)
        cached = self._admit(now, budget, parts) if not preempted else 0
        if not decoding and not parts:
            return None
        return self._forward(now, decoding, parts, preempted, cached)

    def _room(
        self,
        tokens: int,
        request: Request,
        preempted: list[Request],
        decoding: list[Request],
        parts: list[tuple[Request, int]],
    ) -> bool:
        """Make room for `tokens` of a request by throwing out the last ones; False when it is thrown out itself."""
        while self.free < tokens + len(decoding):
            victim = self.running.pop()
            self.release(victim)
            victim.retractions += 1
            preempted.append(victim)
            self.waiting.appendleft(victim)
            if victim in decoding:
                decoding.remove(victim)
            parts[:] = [part for part in parts if part[0] is not victim]
            if victim is request:
                return False
        return True

    def _admit(self, now: float, budget: int, parts: list[tuple[Request, int]]) -> int:
        """Start waiting requests; tokens that the prefix cache gave them."""
        cached_tokens = 0
        while self.waiting and budget > 0 and len(self.running) < self.settings.max_running:
            request = self.waiting[0]
            cached = self.cache.match(request.prompt)
            tokens = min(request.wanted - cached, budget)
            needed = request.wanted if self.settings.reserve_whole_prompt else cached + tokens
            if self.free < needed + len(self.running):
                break
            self.waiting.popleft()
            if request.admitted_s is None:
                request.admitted_s, request.cached = now, cached
            self.queried_tokens += request.prompt.tokens
            self.hold(request, cached + tokens)
            self.running.append(request)
            parts.append((request, tokens))
            budget -= tokens
            cached_tokens += cached
        return cached_tokens

    def _forward(
        self,
        now: float,
        decoding: list[Request],
        parts: list[tuple[Request, int]],
        preempted: list[Request],
        cached: int,
    ) -> Forward:
        spec = self.settings.speculation
        live = sum(request.held + 1 for request in decoding)
        rows = len(decoding) * (spec.draft_tokens if spec else 1)
        graph = not parts and rows <= max(self.settings.graph_sizes, default=0)
        priced = tuple((tokens, request.held - tokens) for request, tokens in parts)
        cost = self.world.price(Work(decoding=len(decoding), live_tokens=live, parts=priced, graph=graph))
        end_s = now + cost.wall_s
        made: Made = []
        finished = [request for request in decoding if self.emit(request, end_s, made)]
        self.grow(made)
        for request, _ in parts:
            if request.held == request.wanted and self.emit(request, end_s, made, verified=False):
                finished.append(request)
        self.finish(finished)
        return Forward(
            kind="mixed" if parts and decoding else "prefill" if parts else "decode",
            start_s=now,
            end_s=end_s,
            cost=cost,
            batch=len(decoding),
            running_before=len(decoding),
            graph=graph,
            made=made,
            finished=finished,
            retracted=preempted,
            new_sequences=len(parts),
            new_tokens=sum(tokens for _, tokens in parts),
            repeated_tokens=sum(tokens for request, tokens in parts if request.retractions),
            cached_tokens=cached,
            used_tokens=self.used,
            queued=len(self.waiting),
            live_tokens=live,
            drafted=rows - len(decoding),
        )
