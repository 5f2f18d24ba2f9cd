"""SGLang 0.5.16's routes over a simulated engine."""

import itertools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec

from stepline.lab.sim.engine import Clocked
from stepline.lab.sim.http import Call, Reply
from stepline.lab.sim.instruments.profiler import Profiler
from stepline.lab.sim.prompt import OnTokens, Prompt, Request, from_ids, from_text
from stepline.lab.sim.sglang import info, metrics
from stepline.lab.sim.sglang.log import SglangLog
from stepline.lab.sim.sglang.policy import SglangScheduler
from stepline.lab.sim.sglang.streams import CompletionAnswer, GenerateAnswer
from stepline.lab.sim.shape import Shape

_QUIET = {"/metrics", "/metrics/"}
"""Mounted beside the application: no access line."""


class SglangApi:
    """Answers calls; generation goes to `live`."""

    def __init__(
        self, live: Clocked, shape: Shape, log: SglangLog, address: tuple[str, int], profiler: Profiler
    ) -> None:
        self._live, self._shape, self._log, self._address = live, shape, log, address
        self.profiler = profiler
        self._scheduler = cast("SglangScheduler", live.engine.scheduler)
        live.engine.on_forward.append(log.forward)
        self._ids = itertools.count(1)
        self._responses = 0
        self._routes: dict[str, Callable[[Call, Reply], None]] = {
            "/health": self._health,
            "/health_generate": self._health,
            "/model_info": self._model_info,
            "/get_model_info": self._model_info,
            "/server_info": self._server_info,
            "/get_server_info": self._server_info,
            "/v1/loads": self._loads,
            "/v1/models": self._models,
            "/metrics": self._metrics,
            "/metrics/": self._metrics,
            "/generate": self._generate,
            "/v1/completions": self._completions,
            "/flush_cache": self._flush,
            "/start_profile": self._start_profile,
            "/stop_profile": self._stop_profile,
        }

    def __call__(self, call: Call, reply: Reply) -> None:
        """Answer one call."""
        route = self._routes.get(call.path)
        if route is None:
            reply.json({"detail": "Not Found"}, 404)
        else:
            try:
                route(call, reply)
            except (ValueError, TypeError, KeyError, OSError) as e:  # msgspec's errors are ValueErrors
                reply.json({"error": {"message": str(e)}}, 400)
        if call.path not in _QUIET:
            self._log.access(self._live.now(), call.peer, call.method, call.path, reply.status or 200)

    def _health(self, _: Call, reply: Reply) -> None:
        reply.send(200, b"", "text/plain")

    def _model_info(self, _: Call, reply: Reply) -> None:
        reply.json(info.model_info(self._scheduler.settings))

    def info(self) -> dict[str, Any]:
        """What `/server_info` answers."""
        host, port = self._address
        return info.server_info(
            self._scheduler.settings,
            self._shape,
            host,
            port,
            throughput=self._log.throughput,
            accept_length=self._log.accept_length,
        )

    def page(self) -> str:
        """What `/metrics` answers."""
        return metrics.render(
            self._scheduler,
            self._live.engine.counters,
            throughput=self._log.throughput,
            accept_length=self._log.accept_length,
            responses=self._responses,
        )

    def startup(self) -> None:
        """Log what a start logs, up to ready."""
        self._log.startup(self._live.now(), *self._address)

    def _server_info(self, _: Call, reply: Reply) -> None:
        reply.json(self.info())

    def _models(self, _: Call, reply: Reply) -> None:
        one = self._scheduler.settings
        card = {"id": one.model, "object": "model", "created": 0, "owned_by": "sglang", "root": one.model}
        reply.json({"object": "list", "data": [card | {"parent": None, "max_model_len": one.context_length}]})

    def _loads(self, _: Call, reply: Reply) -> None:
        scheduler = self._scheduler
        load = {
            "dp_rank": 0,
            "num_running_reqs": len(scheduler.running),
            "num_waiting_reqs": len(scheduler.waiting),
            "num_used_tokens": scheduler.used,
            "max_total_num_tokens": scheduler.settings.kv_tokens,
            "max_running_requests": scheduler.settings.max_running,
            "token_usage": round(scheduler.used / scheduler.settings.kv_tokens, 4),
            "gen_throughput": self._log.throughput,
        }
        reply.json({"version": scheduler.settings.version, "dp_rank_count": 1, "loads": [load]})

    def _metrics(self, _: Call, reply: Reply) -> None:
        reply.send(200, self.page().encode(), "text/plain; version=0.0.4; charset=utf-8")

    def _flush(self, _: Call, reply: Reply) -> None:
        if self._scheduler.busy:
            reply.send(400, b"Flush cache failed: requests are running or waiting.\n", "text/plain")
            return
        self._scheduler.cache.clear()
        reply.send(200, b"Cache flushed.\nPlease check backend logs for more details.\n", "text/plain")

    def _start_profile(self, call: Call, reply: Reply) -> None:
        """Answers at once, as the engine does, and writes on this machine's disk where it was told to."""
        body = call.json()
        if self.profiler.active:
            raise ValueError("Profiling is already in progress. Call /stop_profile first.")
        folder, steps = str(body.get("output_dir") or tempfile.gettempdir()), body.get("num_steps")
        ident = str(time.time())
        self.begin_profile(
            Path(folder),
            lambda rank: f"{ident}-TP-{rank}.trace.json.gz",
            int(steps) if steps else None,
            told=f"{folder} (with profile id: {ident})",
        )
        reply.send(200, b"Start profiling.\n", "text/plain")

    def _stop_profile(self, _: Call, reply: Reply) -> None:
        if not self.profiler.active:
            raise ValueError("Profiling is not in progress. Call /start_profile first.")
        self.end_profile()
        reply.send(200, b"Stop profiling. This will take some time.\n", "text/plain")

    def begin_profile(
        self, folder: Path, names: Callable[[int], str], steps: int | None, *, told: str
    ) -> None:
        """Record `steps` forwards, or until `end_profile`; `told` is the place that the log names."""

        def done() -> None:
            self._log.line(self._live.now(), "Stop profiling...")
            self._log.line(
                self._live.now(), f"Profiling done. Traces are saved to: {told.split(' (', maxsplit=1)[0]}"
            )

        self.profiler.on_done = done
        self.profiler.start(folder, names, steps)
        self._log.line(self._live.now(), f"Profiling starts. Traces will be saved to: {told}")

    def end_profile(self) -> None:
        """Write what was recorded."""
        self.profiler.stop()

    def _generate(self, call: Call, reply: Reply) -> None:
        body = call.json()
        sampling = body.get("sampling_params") or {}
        if "input_ids" in body:
            prompt = from_ids(msgspec.convert(body["input_ids"], list[int]))
        else:
            prompt = from_text(msgspec.convert(body["text"], str))
        request = self._request(prompt, int(sampling.get("max_new_tokens", 128)), body.get("rid"))
        answer = GenerateAnswer(reply, request, stream=bool(body.get("stream")))
        self._begin(request, answer, reply)

    def _completions(self, call: Call, reply: Reply) -> None:
        body = call.json()
        asked = body.get("prompt", "")
        prompt = from_text(asked) if isinstance(asked, str) else from_ids(msgspec.convert(asked, list[int]))
        request = self._request(prompt, int(body.get("max_tokens") or 16), None)
        usage = body.get("stream_options") or {}
        answer = CompletionAnswer(
            reply,
            request,
            model=str(body.get("model") or self._scheduler.settings.model),
            stream=bool(body.get("stream")),
            usage=bool(usage.get("include_usage")),
            usage_always=bool(usage.get("continuous_usage_stats")),
        )
        self._begin(request, answer, reply)

    def _request(self, prompt: Prompt, most: int, rid: Any) -> Request:
        name = rid if isinstance(rid, str) else f"{next(self._ids):032x}"
        return Request(name, prompt, max(1, most), self._live.now())

    def _begin(self, request: Request, answer: GenerateAnswer | CompletionAnswer, reply: Reply) -> None:
        if not self._scheduler.fits(request):
            raise ValueError(
                f"The input ({request.prompt.tokens} tokens) and the answer ({request.max_new}) do not fit "
                f"the model's context length or the KV pool."
            )
        answer.begin()
        request.owner = self._taker(answer)
        reply.on_lost = lambda: self._live.engine.abort(request)
        self._live.submit(request)

    def _taker(self, answer: GenerateAnswer | CompletionAnswer) -> OnTokens:
        def take(_: Request, new: int, at_s: float, made: int, last: bool) -> None:  # noqa: FBT001 - an `OnTokens`
            answer.tokens(new, at_s, made, last=last)
            self._responses += last

        return take
