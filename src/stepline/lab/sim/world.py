"""How long the simulated GPU and host take: bytes over bandwidth, calibrated, plus what a fault adds.

This is a world of its own: it shares facts with the diagnosis, and no formula. A decode step is

    GPU  = (weights / bandwidth share) + (KV / rate of the blocks at work) + layers + sequences + all-reduces
    host = launches and bookkeeping; with graphs and overlap it hides behind the GPU

with shares and constants of `calibration.toml`.
"""

import random

import msgspec

from stepline.facts.hardware import Gpu
from stepline.lab.sim.calibration import Calibration
from stepline.lab.sim.settings import Settings
from stepline.lab.sim.shape import Shape


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
    prefill_factor: float = 1.0
    front_us_per_token: float = 0.0
    """More serial time of the front end for each token that leaves."""
    cold_s: tuple[float, ...] = ()
    """Pauses before the first prefills after start (kernels compiled on first use)."""
    power_capped: bool = False
    """The power limit shows in the GPU's flags; it costs nothing by itself."""


class Cost(msgspec.Struct, frozen=True):
    """Time of one forward in seconds: on the wall, and with the GPU at work."""

    wall_s: float
    gpu_s: float


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
        self._shape, self._gpu, self._settings = shape, gpu, settings
        self._disturbance, self._known = disturbance, calibration
        self._random = random.Random(seed)  # noqa: S311 - a simulation
        self._server = 1 + self._random.gauss(0, calibration.server_spread)
        self._eager = self._random.lognormvariate(0, calibration.eager_spread)
        self._cold = list(disturbance.cold_s)

    def decode(self, running: int, live_tokens: int, *, graph: bool) -> Cost:
        """One decode step of `running` requests that attend to `live_tokens` in all."""
        known, shape, spec = self._known, self._shape, self._settings.speculation
        rows = running * (spec.draft_tokens if spec else 1)
        gpu_ms = self._matrices_ms(rows, share=known.verify_flops_share)
        gpu_ms += self._attention_ms(running, live_tokens)
        gpu_ms += known.ms_per_layer * shape.layers + known.ms_per_expert_layer * shape.expert_layers
        gpu_ms += known.ms_per_sequence * running + self._reduce_ms()
        gpu_ms += self._disturbance.linear_ms * running
        gpu_ms += self._disturbance.context_us_per_ktoken * running * self._settings.context_length / 1e6
        gpu_ms += known.draft_ms if spec else 0.0
        host_ms = known.host_ms + known.host_ms_per_sequence * running
        if not graph:
            host_ms += known.eager_ms_per_layer * shape.layers * self._eager
        return self._price(gpu_ms, host_ms)

    def prefill(self, parts: list[tuple[int, int]]) -> Cost:
        """One prefill of (new tokens, tokens of the request already in the pool) per request."""
        known, shape = self._known, self._shape
        new = sum(tokens for tokens, _ in parts)
        pairs = sum(tokens * (before + tokens / 2) for tokens, before in parts)
        flops = 2 * shape.parameters_per_token * new + 2 * shape.head_parameters * len(parts)
        flops += shape.attention_flops_per_pair * pairs
        compute_ms = 1e3 * flops / (self._gpu.peak(shape.math) * known.prefill_flops_share)
        gpu_ms = max(compute_ms, self._matrices_ms(new, share=1.0)) + self._reduce_ms()
        gpu_ms = (gpu_ms + known.ms_per_layer * shape.layers) * self._disturbance.prefill_factor
        host_ms = known.prefill_host_ms
        if not self._settings.prefill_graphs:
            host_ms = known.prefill_eager_ms_per_layer * shape.layers * self._eager
        elif any(before for _, before in parts):
            host_ms = known.chunk_ms_per_layer * shape.layers
        cost = self._price(gpu_ms, host_ms)
        pause = self._cold.pop(0) if self._cold else 0.0
        return Cost(cost.wall_s + pause, cost.gpu_s)

    def accepted(self) -> int:
        """Drafts that one verification accepts."""
        spec = self._settings.speculation
        count = 0
        while spec and count < spec.draft_tokens - 1 and self._random.random() < spec.accept_chance:
            count += 1
        return count

    def _matrices_ms(self, rows: int, share: float) -> float:
        known, shape, gpu = self._known, self._shape, self._gpu
        plain = shape.attention_bytes + shape.dense_bytes + shape.head_bytes
        routed = shape.expert_bytes * shape.experts_read(rows) * shape.expert_layers
        read_ms = 1e3 * plain / (gpu.bandwidth_bytes_s * known.weight_bandwidth_share)
        read_ms += 1e3 * routed / (gpu.bandwidth_bytes_s * known.expert_bandwidth_share)
        flops = 2 * (shape.parameters_per_token + shape.head_parameters) * rows
        return max(read_ms, 1e3 * flops / (gpu.peak(shape.math) * share))

    def _attention_ms(self, running: int, live_tokens: int) -> float:
        known, shape = self._known, self._shape
        rate = self._gpu.bandwidth_bytes_s * known.kv_bandwidth_share
        if self._settings.kv_splits is not None:
            blocks = running * shape.kv_heads * self._settings.kv_splits
            rate = min(rate, blocks * known.kv_bytes_s_per_block)
        return 1e3 * shape.kv_bytes_per_token * live_tokens / rate

    def _reduce_ms(self) -> float:
        tp = self._settings.tp
        return 2 * self._shape.layers * self._gpu.allreduce_us_common.get(tp, 10.0) / 1e3 if tp > 1 else 0.0

    def _price(self, gpu_ms: float, host_ms: float) -> Cost:
        known, draw = self._known, self._random
        gpu_ms *= self._server * (1 + draw.gauss(0, known.step_jitter)) / self._disturbance.clock_share
        host_ms = (host_ms + self._disturbance.host_ms) * draw.lognormvariate(0, 0.05)
        if draw.random() < known.hiccup_share:
            host_ms += draw.expovariate(1 / known.hiccup_ms)
        wall_ms = max(gpu_ms, host_ms) if self._settings.overlap else gpu_ms + host_ms
        return Cost(wall_ms / 1e3, gpu_ms / 1e3)
