"""How long the simulated GPU and host take: bytes over bandwidth, calibrated, plus what a fault adds.

This is a world of its own: it shares facts with the diagnosis, and no formula. A forward is

    GPU  = weights over their bandwidth share, or FLOPs over theirs + KV over the rate of the blocks at work
           + prefill attention + layers + sequences + all-reduces + what the fault adds
    host = launches and bookkeeping; with graphs and overlap it hides behind the GPU

with shares and constants of `calibration.toml`.
"""

import random

import msgspec

from stepline.facts.hardware import Gpu
from stepline.lab.sim.calibration import Calibration
from stepline.lab.sim.settings import Settings
from stepline.lab.sim.shape import Shape

_QUERY_BLOCK = 128
"""New tokens that one thread block of prefill attention takes."""


class Disturbance(msgspec.Struct, frozen=True, kw_only=True):
    """What a fault does to time that no setting tells."""

    host_ms: float = 0.0
    """More host time in every step."""
    linear_ms: float = 0.0
    """GPU time per running request that no roofline term explains."""
    context_us_per_ktoken: float = 0.0
    """GPU time per running request and thousand tokens of *configured* context."""
    clock_share: float = 1.0
    """Clock against the usual one; below 1 everything on the GPU takes longer."""
    clock_reasons: int = 0
    """NVML's bits for it."""
    front_us_per_token: float = 0.0
    """More serial time of the front end for each token that leaves."""
    cold_s: tuple[float, ...] = ()
    """Pauses before the first prefills after start (kernels compiled on first use)."""


class Cost(msgspec.Struct, frozen=True):
    """One forward: seconds on the wall and of the GPU at work; bytes and FLOPs of one rank."""

    wall_s: float
    gpu_s: float
    read_bytes: float
    flops: float


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What a forward has to do."""

    decoding: int = 0
    """Requests that make tokens."""
    live_tokens: int = 0
    """Tokens that they attend to in all."""
    parts: tuple[tuple[int, int], ...] = ()
    """(new prompt tokens, tokens of that request already in the pool) of each prefill in it."""
    graph: bool = True
    """Decode kernels are launched as one graph."""


class World:
    """Prices forwards for one server; `seed` fixes its imperfections."""

    def __init__(
        self,
        shape: Shape,
        gpu: Gpu,
        settings: Settings,
        disturbance: Disturbance,
        calibration: Calibration,
        *,
        seed: int,
    ) -> None:
        self.disturbance = disturbance
        self._shape, self._gpu, self._settings, self._known = shape, gpu, settings, calibration
        self._random = random.Random(seed)  # noqa: S311 - a simulation
        self._server = 1 + self._random.gauss(0, calibration.server_spread)
        self._eager = self._random.lognormvariate(0, calibration.eager_spread)
        self._cold = list(disturbance.cold_s)

    def price(self, work: Work) -> Cost:
        """The cost of one forward."""
        known, shape, fault, spec = self._known, self._shape, self.disturbance, self._settings.speculation
        new = sum(tokens for tokens, _ in work.parts)
        rows = work.decoding * (spec.draft_tokens if spec else 1) + new
        share = known.prefill_flops_share if work.parts else known.decode_flops_share
        gpu_ms, read_bytes, flops = self._matrices(rows, work.decoding + len(work.parts), share)
        kv_bytes = shape.kv_bytes_per_token * work.live_tokens
        gpu_ms += 1e3 * kv_bytes / self._kv_rate(work.decoding) if work.decoding else 0.0
        gpu_ms += sum(self._prefill_attention_ms(tokens, before) for tokens, before in work.parts)
        gpu_ms += known.ms_per_layer * shape.layers + known.ms_per_expert_layer * shape.expert_layers
        gpu_ms += known.ms_per_sequence * work.decoding + self._reduce_ms()
        gpu_ms += fault.linear_ms * work.decoding
        gpu_ms += fault.context_us_per_ktoken * work.decoding * self._settings.context_length / 1e6
        gpu_ms += known.draft_ms if spec and work.decoding else 0.0
        return self._timed(gpu_ms, self._host_ms(work), read_bytes + kv_bytes, flops, cold=bool(work.parts))

    def accepted(self) -> int:
        """Drafts that one verification accepts."""
        spec = self._settings.speculation
        count = 0
        while spec and count < spec.draft_tokens - 1 and self._random.random() < spec.accept_chance:
            count += 1
        return count

    def _matrices(self, rows: int, sampled: int, share: float) -> tuple[float, float, float]:
        """(ms, bytes, FLOPs) of all weight matrices; the head works for `sampled` rows only."""
        known, shape, gpu = self._known, self._shape, self._gpu
        plain = shape.attention_bytes + shape.dense_bytes + shape.head_bytes
        routed = shape.expert_bytes * shape.experts_read(rows) * shape.expert_layers
        read_ms = 1e3 * plain / (gpu.bandwidth_bytes_s * known.weight_bandwidth_share)
        read_ms += 1e3 * routed / (gpu.bandwidth_bytes_s * known.expert_bandwidth_share)
        flops = 2 * (shape.parameters_per_token * rows + shape.head_parameters * sampled)
        return max(read_ms, 1e3 * flops / (gpu.peak(shape.math) * share)), plain + routed, flops

    def _kv_rate(self, decoding: int) -> float:
        """Bytes of KV a second: of the memory, or of the blocks where they are too few."""
        rate = self._gpu.bandwidth_bytes_s * self._known.kv_bandwidth_share
        if self._settings.kv_splits is None:
            return rate
        blocks = decoding * self._shape.kv_heads * self._settings.kv_splits
        return min(rate, blocks * self._known.kv_bytes_s_per_block)

    def _prefill_attention_ms(self, tokens: int, before: int) -> float:
        known, shape = self._known, self._shape
        blocks = shape.heads * -(-tokens // _QUERY_BLOCK)
        rate = min(
            self._gpu.peak("bf16") * known.prefill_attention_share, blocks * known.prefill_flops_s_per_block
        )
        return 1e3 * shape.attention_flops_per_pair * tokens * (before + tokens / 2) / rate

    def _reduce_ms(self) -> float:
        tp = self._settings.tp
        # 10 us where nobody published a number: what small all-reduces take over PCIe.
        return 2 * self._shape.layers * self._gpu.allreduce_us_common.get(tp, 10.0) / 1e3 if tp > 1 else 0.0

    def _host_ms(self, work: Work) -> float:
        known, layers = self._known, self._shape.layers
        host_ms = known.host_ms + known.host_ms_per_sequence * work.decoding + self.disturbance.host_ms
        if not work.parts:
            return host_ms if work.graph else host_ms + known.eager_ms_per_layer * layers * self._eager
        if not self._settings.prefill_graphs:
            return host_ms + known.prefill_eager_ms_per_layer * layers * self._eager
        return host_ms + known.prefill_host_ms

    def _timed(self, gpu_ms: float, host_ms: float, read_bytes: float, flops: float, *, cold: bool) -> Cost:
        known, draw = self._known, self._random
        gpu_ms *= self._server * (1 + draw.gauss(0, known.step_jitter)) / self.disturbance.clock_share
        host_ms *= draw.lognormvariate(0, 0.05)
        if draw.random() < known.hiccup_share:
            host_ms += draw.expovariate(1 / known.hiccup_ms)
        wall_ms = max(gpu_ms, host_ms) if self._settings.overlap else gpu_ms + host_ms
        pause_s = self._cold.pop(0) if cold and self._cold else 0.0
        return Cost(wall_ms / 1e3 + pause_s, gpu_ms / 1e3, read_bytes, flops)
