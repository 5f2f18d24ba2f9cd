"""Sums over an engine's life, from which its metrics are printed."""

from bisect import bisect_left
from itertools import accumulate

from stepline.lab.sim.forward import Forward
from stepline.lab.sim.prompt import Request


class Histogram:
    """Sum and count of some times, and how many lie at or under each bound."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.total, self.count = 0.0, 0
        self._within = [0] * (len(bounds) + 1)

    def add(self, value: float, times: int = 1) -> None:
        """Count a value, `times` times."""
        self.total += value * times
        self.count += times
        self._within[bisect_left(self.bounds, value)] += times

    def under(self) -> list[int]:
        """How many were at or under each bound."""
        return list(accumulate(self._within[:-1]))


TTFT_BOUNDS = (
    0.1,
    0.2,
    0.4,
    0.6,
    0.8,
    1.0,
    2.0,
    4.0,
    6.0,
    8.0,
    10.0,
    20.0,
    40.0,
    60.0,
    80.0,
    100.0,
    200.0,
    400.0,
)
ITL_BOUNDS = (0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06, 0.08, 0.1, 0.2, 0.4, 0.6,
              0.8, 1.0, 2.0, 4.0, 6.0, 8.0)  # fmt: skip
STEP_TOKEN_BOUNDS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)


class Counters:
    """Everything the metrics pages need; times of requests are as the front end saw them."""

    def __init__(self) -> None:
        self.ttft, self.itl = Histogram(TTFT_BOUNDS), Histogram(ITL_BOUNDS)
        self.output_gap = Histogram(ITL_BOUNDS)
        """Gaps between a request's outputs, however many tokens each holds."""
        self.e2e, self.queue = Histogram(TTFT_BOUNDS), Histogram(TTFT_BOUNDS)
        self.step_tokens = Histogram(STEP_TOKEN_BOUNDS)
        self.received = self.answered = self.finished = 0
        self.prompt_tokens = self.generated = self.prefill_tokens = self.cached_tokens = (
            self.decode_tokens
        ) = 0
        self.made = 0
        self.prefill_passes = {True: 0, False: 0}
        self.decode_passes = {True: 0, False: 0}
        self.retracted = 0
        self.drafts = self.draft_tokens = self.accepted = 0
        self._last: dict[str, float] = {}

    def forward(self, done: Forward) -> None:
        """Count one forward."""
        passes = self.prefill_passes if done.kind == "prefill" else self.decode_passes
        passes[done.graph] += 1
        self.prefill_tokens += done.new_tokens
        self.cached_tokens += done.cached_tokens
        self.retracted += len(done.retracted)
        made = sum(tokens for _, tokens in done.made)
        self.made += made
        if done.kind != "prefill":
            self.decode_tokens += made
        if done.drafted:
            self.drafts += done.batch
            self.draft_tokens += done.drafted
            self.accepted += max(0, made - done.batch)
        if made or done.new_tokens:
            self.step_tokens.add(made + done.new_tokens)

    def delivered(self, request: Request, tokens: int, at_s: float) -> None:
        """Count tokens that the front end handed out."""
        self.generated += tokens
        last = self._last.get(request.rid)
        if last is None:
            self.ttft.add(at_s - request.arrival_s)
            self.queue.add((request.admitted_s or request.arrival_s) - request.arrival_s)
            self.answered += 1
        else:
            self.itl.add((at_s - last) / tokens, tokens)
            self.output_gap.add(at_s - last)
        self._last[request.rid] = at_s

    def ended(self, request: Request, at_s: float) -> None:
        """Count a finished request."""
        self.finished += 1
        self.prompt_tokens += request.prompt.tokens
        self.e2e.add(at_s - request.arrival_s)
        self._last.pop(request.rid, None)

    def dropped(self, request: Request) -> None:
        """Forget a request that its client gave up."""
        self._last.pop(request.rid, None)
