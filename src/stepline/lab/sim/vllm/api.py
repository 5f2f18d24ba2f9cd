"""vLLM 0.20's routes over a simulated engine, development mode on."""

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec

from stepline.lab.sim.engine import Clocked
from stepline.lab.sim.http import Call, Reply
from stepline.lab.sim.instruments.profiler import Profiler
from stepline.lab.sim.prompt import Request, from_ids, from_text
from stepline.lab.sim.vllm import info, metrics
from stepline.lab.sim.vllm.log import VllmLog
from stepline.lab.sim.vllm.policy import VllmScheduler
from stepline.lab.sim.vllm.streams import CompletionAnswer, Options


class VllmApi:
    """Answers calls; generation goes to `live`."""

    def __init__(self, live: Clocked, log: VllmLog, address: tuple[str, int], profiler: Profiler) -> None:
        self._live, self._log, self._address, self.profiler = live, log, address, profiler
        scheduler = self._scheduler = cast("VllmScheduler", live.engine.scheduler)
        live.engine.on_forward.append(log.forward)
        live.engine.on_tick.append(log.tick)
        self._ids = itertools.count(1)
        self._responses = 0
        self._routes: dict[str, Callable[[Call, Reply], None]] = {
            "/health": lambda _, reply: reply.send(200, b"", "text/plain"),
            "/version": lambda _, reply: reply.json({"version": scheduler.settings.version}),
            "/v1/models": self._models,
            "/metrics": self._metrics,
            "/server_info": lambda _, reply: reply.json(self.info()),
            "/reset_prefix_cache": self._reset,
            "/v1/completions": self._completions,
        }
        if scheduler.settings.trace_folder is not None:
            self._routes |= {"/start_profile": self._start_profile, "/stop_profile": self._stop_profile}

    def __call__(self, call: Call, reply: Reply) -> None:
        """Answer one call; an engine launched without a profiler has no routes for it."""
        route = self._routes.get(call.path)
        if route is None:
            reply.json({"detail": "Not Found"}, 404)
        else:
            try:
                route(call, reply)
            except (ValueError, TypeError, KeyError, OSError) as e:  # msgspec's errors are ValueErrors
                reply.json(
                    {"error": {"message": str(e), "type": "BadRequestError", "param": None, "code": 400}}, 400
                )
        self._log.access(call.peer, call.method, call.path, reply.status or 200)

    def info(self) -> dict[str, Any]:
        """What `/server_info` answers."""
        return info.server_info(self._scheduler.settings)

    def page(self) -> str:
        """What `/metrics` answers."""
        return metrics.render(self._scheduler, self._live.engine.counters, self._responses)

    def startup(self) -> None:
        """Log what a start logs, up to ready."""
        self._log.startup(self._live.now(), *self._address)

    def _models(self, _: Call, reply: Reply) -> None:
        one = self._scheduler.settings
        card = {"id": one.model, "object": "model", "created": 0, "owned_by": "vllm", "root": one.model}
        reply.json({"object": "list", "data": [card | {"parent": None, "max_model_len": one.context_length}]})

    def _metrics(self, _: Call, reply: Reply) -> None:
        reply.send(200, self.page().encode(), "text/plain; version=0.0.4; charset=utf-8")

    def _start_profile(self, _: Call, reply: Reply) -> None:
        stem = f"{time.time_ns()}.pt.trace.json.gz"
        folder = Path(self._scheduler.settings.trace_folder or "")
        self.begin_profile(folder, lambda rank: f"dp0_pp0_tp{rank}_dcp0_ep0_rank{rank}.{stem}", None)
        reply.send(200, b"", "text/plain")

    def _stop_profile(self, _: Call, reply: Reply) -> None:
        self.end_profile()
        reply.send(200, b"", "text/plain")

    def begin_profile(self, folder: Path, names: Callable[[int], str], steps: int | None, **_: str) -> None:
        """Record `steps` forwards, or until `end_profile`; the log names no place."""

        def done() -> None:
            self._log.say(self._live.now(), "Stopping profiler...")
            self._log.say(self._live.now(), "Profiler stopped.")

        self.profiler.on_done = done
        self.profiler.start(folder, names, steps)
        self._log.say(self._live.now(), "Starting profiler...")

    def end_profile(self) -> None:
        """Write what was recorded."""
        self.profiler.stop()

    def _reset(self, _: Call, reply: Reply) -> None:
        self._scheduler.cache.clear()
        reply.send(200, b"", "text/plain")

    def _completions(self, call: Call, reply: Reply) -> None:
        body = call.json()
        asked = body.get("prompt", "")
        ids = () if isinstance(asked, str) else msgspec.convert(asked, tuple[int, ...])
        prompt = from_text(asked) if isinstance(asked, str) else from_ids(ids)
        usage = body.get("stream_options") or {}
        request = Request(
            f"{next(self._ids):032x}", prompt, max(1, int(body.get("max_tokens") or 16)), self._live.now()
        )
        if not self._scheduler.fits(request):
            raise ValueError(
                f"This model's maximum context length is {self._scheduler.settings.context_length} tokens; "
                f"{prompt.tokens} prompt tokens and {request.max_new} of the answer do not fit it or the KV cache."
            )
        answer = CompletionAnswer(
            reply,
            request,
            Options(
                model=str(body.get("model") or self._scheduler.settings.model),
                stream=bool(body.get("stream")),
                usage=bool(usage.get("include_usage")),
                usage_always=bool(usage.get("continuous_usage_stats")),
                token_ids=bool(body.get("return_token_ids")),
                prompt_ids=ids,
            ),
        )
        answer.begin()

        def take(_: Request, new: int, at_s: float, made: int, last: bool) -> None:  # noqa: ARG001, FBT001
            answer.tokens(new, made, last=last)
            self._responses += last

        request.owner = take
        reply.on_lost = lambda: self._live.engine.abort(request)
        self._live.submit(request)
