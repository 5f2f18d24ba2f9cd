"""SGLang 0.5.16's log over simulated forwards, line by line as the real one prints it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from stepline.lab.sim.forward import Forward
from stepline.lab.sim.settings import Settings
from stepline.lab.sim.sglang.info import prefill_graph_sizes, server_args
from stepline.lab.sim.shape import Shape

GIB = 1024**3


class SglangLog:
    """Prints to `write`; `epoch_s` is the Unix time (in the log's own zone) of second 0 of the engine's clock."""

    def __init__(
        self,
        write: Callable[[str], Any],
        settings: Settings,
        shape: Shape,
        memory_bytes: float,
        epoch_s: float,
    ) -> None:
        self._write, self._settings, self._shape = write, settings, shape
        self._memory, self._epoch = memory_bytes, epoch_s
        self._tag = " TP0" if settings.tp > 1 else ""
        self._decodes = self._tokens = 0
        self._drafted = self._verified = 0
        self._decode_tic = self._prefill_tic = 0.0
        self.throughput = 0.0
        """Of the last decode line."""
        self.accept_length = 0.0

    def line(self, at_s: float, text: str, *, tag: bool = True) -> None:
        """One line with its stamp."""
        moment = datetime.fromtimestamp(0, UTC) + timedelta(seconds=self._epoch + at_s)
        self._write(f"[{moment:%Y-%m-%d %H:%M:%S}{self._tag if tag else ''}] {text}\n")

    def startup(self, at_s: float, host: str, port: int) -> None:
        """The lines from launch to ready; their seconds count back from `at_s`."""
        one, shape = self._settings, self._shape
        left = self._memory / GIB
        weights, pool = shape.weight_bytes / GIB, shape.kv_bytes_per_token * one.kv_tokens / GIB
        args = ", ".join(f"{key}={value!r}" for key, value in server_args(one, host, port).items())
        self.line(at_s - 40, f"server_args=ServerArgs({args})", tag=False)
        for remark in one.remarks:
            self.line(at_s - 39, remark)
        self.line(at_s - 32, "Init torch distributed begin.")
        self.line(at_s - 32, "Init torch distributed ends. elapsed=0.39 s, mem usage=0.09 GB")
        self.line(at_s - 31, f"Load weight begin. avail mem={left:.2f} GB")
        left -= weights
        self.line(
            at_s - 20,
            f"Load weight end. elapsed=11.20 s, type={shape.architecture}, "
            f"{'quant=fp8, ' if shape.math == 'fp8' else ''}avail mem={left:.2f} GB, mem usage={weights:.2f} GB.",
        )
        left -= pool
        half = pool / 2
        self.line(
            at_s - 18,
            f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {one.kv_tokens}, "
            f"K size: {half:.2f} GB, V size: {half:.2f} GB",
        )
        self.line(at_s - 18, f"Memory pool end. avail mem={left:.2f} GB")
        if one.prefill_graphs:
            sizes = prefill_graph_sizes(one.chunk_tokens)
            self.line(
                at_s - 18,
                f"Capture target prefill CUDA graph begin. backend=breakable, num_tokens={sizes}, "
                f"avail mem={left:.2f} GB",
            )
            left -= 1.2
            self.line(
                at_s - 8,
                f"Capture target prefill CUDA graph end. elapsed=9.61 s, mem usage=1.20 GB, avail mem={left:.2f} GB.",
            )
        if one.graph_sizes:
            each = one.speculation.draft_tokens if one.speculation else 1
            what = "verify" if one.speculation else "decode"
            self.line(
                at_s - 8,
                f"Capture target {what} CUDA graph begin. backend=full, num_tokens_per_req={each}, "
                f"bs={list(one.graph_sizes)}, avail mem={left:.2f} GB",
            )
            left -= 0.6
            self.line(
                at_s - 5,
                f"Capture target {what} CUDA graph end. elapsed=2.83 s, mem usage=0.60 GB, avail mem={left:.2f} GB.",
            )
        self.line(
            at_s - 5,
            f"max_total_num_tokens={one.kv_tokens}, chunked_prefill_size={one.chunk_tokens}, "
            f"max_prefill_tokens={one.max_prefill_tokens}, max_running_requests={one.max_running}, "
            f"context_len={one.context_length}, available_gpu_mem={left:.2f} GB",
        )
        self.line(
            at_s - 5,
            "Tree cache initialized: source=default impl=RadixCache hybrid_swa=False hybrid_ssm=False "
            "hierarchical=False streaming_wrapped=False",
        )
        for text in (
            "Started server process [484]",
            "Waiting for application startup.",
            "Application startup complete.",
        ):
            self.line(at_s - 5, f"INFO:     {text}", tag=False)
        self.line(
            at_s - 5, f"INFO:     Uvicorn running on http://{host}:{port} (Press CTRL+C to quit)", tag=False
        )
        self.line(at_s, "The server is fired up and ready to roll!", tag=False)
        self._decode_tic = self._prefill_tic = at_s

    def access(self, at_s: float, peer: str, method: str, path: str, status: int) -> None:
        """Uvicorn's line of a request."""
        word = {200: "OK", 400: "Bad Request", 404: "Not Found", 501: "Not Implemented"}.get(status, "")
        self.line(at_s, f'INFO:     {peer} - "{method} {path} HTTP/1.1" {status} {word}', tag=False)

    def forward(self, done: Forward) -> None:
        """Print what the engine prints after a forward."""
        if done.retracted:
            gained = sum(request.wanted for request in done.retracted)
            self.line(
                done.start_s,
                f"KV cache pool is full. Retract requests. #retracted_reqs: {len(done.retracted)}, "
                f"#new_tokens_gained: {gained}, #new_token_ratio: {done.ratio_before:.4f} -> {done.ratio:.4f}",
            )
        self._tokens += sum(tokens for _, tokens in done.made)
        if done.kind == "prefill":
            self._prefill(done)
            return
        self._decodes += 1
        self._drafted += done.drafted
        self._verified += done.batch if done.drafted else 0
        if self._decodes % self._settings.log_interval == 0:
            self._decode(done)

    def _prefill(self, done: Forward) -> None:
        elapsed = max(1e-6, done.end_s - self._prefill_tic)
        self._prefill_tic = done.end_s
        self.line(
            done.end_s,
            f"Prefill batch, #new-seq: {done.new_sequences}, #new-token: {done.new_tokens}, "
            f"#cached-token: {done.cached_tokens}, token usage: {self._usage(done):.2f}, "
            f"#running-req: {done.running_before}, #queue-req: {done.queued}, #pending-token: {done.pending_tokens}, "
            f"cuda graph: {done.graph}, input throughput (token/s): {done.new_tokens / elapsed:.2f}",
        )

    def _decode(self, done: Forward) -> None:
        elapsed = max(1e-6, done.end_s - self._decode_tic)
        self._decode_tic = done.end_s
        self.throughput = self._tokens / elapsed
        accepted = ""
        if self._verified:
            # Every verification yields the bonus token besides what was accepted.
            self.accept_length = self._tokens / self._verified
            drafts = self._settings.speculation.draft_tokens - 1 if self._settings.speculation else 1
            rate = max(0.0, self.accept_length - 1) / drafts
            accepted = f"accept len: {self.accept_length:.2f}, accept rate: {rate:.2f}, "
        self._tokens = self._drafted = self._verified = 0
        self.line(
            done.end_s,
            f"Decode batch, #running-req: {done.batch}, #token: {done.used_tokens}, "
            f"token usage: {self._usage(done):.2f}, {accepted}cuda graph: {done.graph}, "
            f"gen throughput (token/s): {self.throughput:.2f}, #queue-req: {done.queued}",
        )

    def _usage(self, done: Forward) -> float:
        return done.used_tokens / self._settings.kv_tokens
