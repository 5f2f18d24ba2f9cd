"""The queue, the KV pool and the running batch: what schedulers of both engines share.

A scheduler knows no clock: `step(now)` performs the next forward as of `now` and says when it ends.
"""

from collections import deque

from stepline.lab.sim.cache import PrefixCache
from stepline.lab.sim.forward import Forward, Made
from stepline.lab.sim.prompt import Request
from stepline.lab.sim.settings import Settings
from stepline.lab.sim.world import World


class Scheduler:
    """State of one engine; subclasses decide what the next forward is."""

    def __init__(self, settings: Settings, world: World) -> None:
        self.settings, self.world = settings, world
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.cache = PrefixCache(enabled=settings.prefix_cache)
        self.used = 0
        """Tokens of the pool that unfinished requests hold."""

    @property
    def busy(self) -> bool:
        """There is something to do."""
        return bool(self.waiting or self.running)

    @property
    def free(self) -> int:
        """Tokens that can be had, those of the prefix cache included."""
        return self.settings.kv_tokens - self.used

    def fits(self, request: Request) -> bool:
        """False for a request that even an empty engine could not finish."""
        total = request.prompt.tokens + request.max_new
        return total <= self.settings.context_length and total < self.settings.kv_tokens

    def submit(self, request: Request) -> None:
        """Put a request into the queue."""
        self.waiting.append(request)

    def abort(self, request: Request) -> None:
        """Drop a request wherever it is."""
        if request in self.waiting:
            self.waiting.remove(request)
        if request in self.running:
            self.running.remove(request)
        self.release(request)

    def step(self, now: float) -> Forward | None:
        """Perform the next forward; None when nothing can run."""
        raise NotImplementedError

    def hold(self, request: Request, tokens: int) -> None:
        """Give a request room for `tokens` more."""
        request.held += tokens
        self.used += tokens
        self.cache.shrink(self.free)

    def grow(self, made: Made) -> None:
        """Give requests room for the tokens that a step made of them."""
        for request, tokens in made:
            request.held += tokens
            self.used += tokens
        self.cache.shrink(self.free)

    def release(self, request: Request) -> None:
        """Take back a request's room."""
        self.used -= request.held
        request.held = 0

    def emit(self, request: Request, end_s: float, made: Made, *, verified: bool = True) -> bool:
        """Give a request the tokens of one step, one of a prefill (`verified` False); True when it was its last."""
        tokens = min(1 + (self.world.accepted() if verified else 0), request.max_new - request.made)
        request.made += tokens
        request.steps += 1
        request.first_s = end_s if request.first_s is None else request.first_s
        request.last_s = end_s
        made.append((request, tokens))
        return request.done

    def finish(self, finished: list[Request]) -> None:
        """Take finished requests out; their prompts stay in the prefix cache."""
        for request in finished:
            if request in self.running:
                self.running.remove(request)
            self.release(request)
            self.cache.keep(request.prompt)
        self.cache.shrink(self.free)
