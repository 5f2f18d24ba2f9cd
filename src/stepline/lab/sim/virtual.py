"""A simulated engine on a clock that jumps: minutes of serving in moments, the same for the same seed."""

from stepline.lab.sim.engine import Engine
from stepline.lab.sim.prompt import Request


class Virtual:
    """Runs an engine as fast as it computes."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.now_s = 0.0

    def now(self) -> float:
        """Seconds of the engine's clock."""
        return self.now_s

    def submit(self, request: Request) -> None:
        """Take a request."""
        self.engine.submit(request)

    def run(self, until_s: float) -> None:
        """Serve until the clock reaches `until_s`; a forward that began before is finished."""
        engine = self.engine
        while self.now_s < until_s:
            done = engine.begin(self.now_s)
            if done is None:
                next_s = engine.next_s()
                self.now_s = until_s if next_s is None else min(until_s, max(next_s, self.now_s))
                engine.hand_out(self.now_s)
            else:
                engine.hand_out(done.end_s)
                self.now_s = done.end_s
                engine.settle(done)
            for tick in engine.on_tick:
                tick(self.now_s)
