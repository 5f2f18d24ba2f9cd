"""vLLM 0.20's log: start-up, access lines, and one line of state every ten seconds while it works."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from stepline.lab.sim.forward import Forward
from stepline.lab.sim.shape import Shape
from stepline.lab.sim.vllm.info import engine_config, non_default_args
from stepline.lab.sim.vllm.policy import VllmScheduler

GIB = 1024**3
INTERVAL_S = 10.0
_API, _CORE = "(APIServer pid=484)", "(EngineCore pid=710)"


class VllmLog:
    """Prints to `write`; `epoch_s` is the Unix time (in the log's own zone) of second 0 of the engine's clock."""

    def __init__(
        self,
        write: Callable[[str], Any],
        scheduler: VllmScheduler,
        shape: Shape,
        *,
        epoch_s: float,
    ) -> None:
        self._write, self._scheduler, self._shape = write, scheduler, shape
        self._epoch = epoch_s
        self._since = 0.0
        self._prompt = self._made = self._retracted = 0
        self._hits = 0
        self._drafts = self._drafted = self._accepted = 0
        self._by_position: list[int] = []
        self._was_busy = False

    def line(self, at_s: float, who: str, source: str, text: str, level: str = "INFO") -> None:
        """One line with its process, stamp and source."""
        moment = datetime.fromtimestamp(0, UTC) + timedelta(seconds=self._epoch + at_s)
        self._write(f"{who} {level} {moment:%m-%d %H:%M:%S} [{source}] {text}\n")

    def startup(self, at_s: float, host: str, port: int) -> None:
        """The lines from launch to ready; their seconds count back from `at_s`."""
        one, shape = self._scheduler.settings, self._shape
        self.line(at_s - 60, _API, "utils.py:299", f"vLLM API server version {one.version}")
        self.line(at_s - 60, _API, "utils.py:233", f"non-default args: {non_default_args(one, port)!r}")
        self.line(at_s - 55, _API, "model.py:549", f"Resolved architecture: {shape.architecture}")
        self.line(at_s - 55, _API, "model.py:1678", f"Using max model len {one.context_length}")
        self.line(
            at_s - 54,
            _API,
            "scheduler.py:238",
            f"Chunked prefill is enabled with max_num_batched_tokens={one.chunk_tokens}.",
        )
        if not one.graph_sizes:
            self.line(
                at_s - 54,
                _API,
                "vllm.py:840",
                "Enforce eager set, disabling torch.compile and CUDAGraphs. This is equivalent to setting "
                "-cc.mode=none -cc.cudagraph_mode=none",
                "WARNING",
            )
        word = "enabled" if one.overlap else "disabled"
        self.line(at_s - 54, _API, "vllm.py:790", f"Asynchronous scheduling is {word}.")
        self.line(
            at_s - 50,
            _CORE,
            "core.py:105",
            f"Initializing a V1 LLM engine (v{one.version}) with config: {engine_config(one)}",
        )
        backend = one.attention_backend.upper()
        self.line(
            at_s - 45,
            _CORE,
            "cuda.py:334",
            f"Using {backend} attention backend out of potential backends: ['{backend}', 'TRITON_ATTN'].",
        )
        for remark in one.remarks:
            self.line(at_s - 40, _CORE, "fused_moe.py:1096", remark, "WARNING")
        weights = shape.weight_bytes / GIB
        pool = shape.kv_bytes_per_token * one.kv_tokens / GIB
        self.line(
            at_s - 30,
            _CORE,
            "gpu_model_runner.py:4820",
            f"Model loading took {weights:.2f} GiB memory and 11.204518 seconds",
        )
        if one.graph_sizes:
            self.line(at_s - 20, _CORE, "monitor.py:48", "torch.compile took 8.31 s in total")
        self.line(at_s - 18, _CORE, "gpu_worker.py:456", f"Available KV cache memory: {pool:.2f} GiB")
        self.line(at_s - 18, _CORE, "kv_cache_utils.py:1319", f"GPU KV cache size: {one.kv_tokens:,} tokens")
        self.line(
            at_s - 18,
            _CORE,
            "kv_cache_utils.py:1324",
            f"Maximum concurrency for {one.context_length:,} tokens per request: "
            f"{one.kv_tokens / one.context_length:.2f}x",
        )
        if one.graph_sizes:
            self.line(
                at_s - 5,
                _CORE,
                "gpu_model_runner.py:5934",
                "Graph capturing finished in 6 secs, took 0.60 GiB",
            )
        self.line(
            at_s - 4,
            _CORE,
            "core.py:283",
            "init engine (profile, create kv cache, warmup model) took 26.12 seconds",
        )
        self.line(at_s - 2, _API, "api_server.py:580", f"Starting vLLM server on http://{host}:{port}")
        for text in (
            "Started server process [484]",
            "Waiting for application startup.",
            "Application startup complete.",
        ):
            self._write(f"{_API} INFO:     {text}\n")
        self._since = at_s

    def say(self, at_s: float, text: str) -> None:
        """A line of the front end's own."""
        self.line(at_s, _API, "api_router.py:33", text)

    def access(self, peer: str, method: str, path: str, status: int) -> None:
        """Uvicorn's line of a request."""
        word = {200: "OK", 400: "Bad Request", 404: "Not Found"}.get(status, "")
        self._write(f'{_API} INFO:     {peer} - "{method} {path} HTTP/1.1" {status} {word}\n')

    def forward(self, done: Forward) -> None:
        """Count a forward."""
        made = sum(tokens for _, tokens in done.made)
        self._prompt += done.new_tokens
        self._hits += done.cached_tokens
        self._made += made
        self._retracted += len(done.retracted)
        spec = self._scheduler.settings.speculation
        if done.drafted and spec:
            self._by_position = self._by_position or [0] * (spec.draft_tokens - 1)
            self._drafts += done.batch
            self._drafted += done.drafted
            for _, tokens in done.made:
                for position in range(tokens - 1):
                    self._by_position[position] += 1
                    self._accepted += 1

    def tick(self, now: float) -> None:
        """Print the state when ten seconds have passed; an idle engine says so once, then nothing."""
        if now - self._since < INTERVAL_S:
            return
        elapsed, self._since = now - self._since, now
        scheduler = self._scheduler
        busy = bool(self._prompt or self._made or scheduler.busy)
        if busy or self._was_busy:
            preempted = f"Preemptions: {self._retracted}, " if self._retracted else ""
            hit = 100 * self._hits / max(1, scheduler.queried_tokens)
            self.line(
                now,
                _API,
                "loggers.py:259",
                f"Engine 000: Avg prompt throughput: {self._prompt / elapsed:.1f} tokens/s, "
                f"Avg generation throughput: {self._made / elapsed:.1f} tokens/s, "
                f"Running: {len(scheduler.running)} reqs, Waiting: {len(scheduler.waiting)} reqs, {preempted}"
                f"GPU KV cache usage: {100 * scheduler.used / scheduler.settings.kv_tokens:.1f}%, "
                f"Prefix cache hit rate: {hit:.1f}%",
            )
            if self._drafts:
                self._speculation(now, elapsed)
        self._was_busy = busy
        self._prompt = self._made = self._retracted = 0

    def _speculation(self, now: float, elapsed: float) -> None:
        rates = ", ".join(f"{count / self._drafts:.3f}" for count in self._by_position)
        self.line(
            now,
            _API,
            "metrics.py:101",
            f"SpecDecoding metrics: Mean acceptance length: {1 + self._accepted / self._drafts:.2f}, "
            f"Accepted throughput: {self._accepted / elapsed:.2f} tokens/s, "
            f"Drafted throughput: {self._drafted / elapsed:.2f} tokens/s, Accepted: {self._accepted} tokens, "
            f"Drafted: {self._drafted} tokens, Per-position acceptance rate: {rates}, "
            f"Avg Draft acceptance rate: {100 * self._accepted / self._drafted:.1f}%",
        )
        self._drafts = self._drafted = self._accepted = 0
        self._by_position = []
