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
    exchange_us: float = 0.0
    """More latency of each all-reduce."""
    exchange_bytes_s: float | None = None
    """Rate at which activations cross between GPUs; None: of links so fast that it can be left out."""
    late_share: float = 0.0
    """The last rank's GPU takes longer for its own kernels by this share."""
    unfused_times: float = 1.0
    """Decode attention operator by operator takes this many times a fused kernel's time; 1: it is fused."""
    wide_parts: tuple[str, ...] = ()
    """Parts whose weights are kept and multiplied in 32 bits: `attention`, `dense`, `head`."""
    wide_math: str = "tf32"
    trace_fault: str = ""
    """What the profiler does wrong: see `trace`."""


class Parts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """GPU time of a forward by what it is spent on, in ms before this server's own factor and jitter."""

    projections: float
    """Attention's weight matrices."""
    dense: float
    experts: float
    head: float
    cache: float
    """Decode attention over the KV cache in a fused kernel."""
    unfused: float
    """The same operator by operator, in its place."""
    prefill_attention: float
    layers: float
    """Small kernels and gaps of every layer."""
    sampling: float
    reduces: float
    one_by_one: float
    """What a fault spends on each running request."""
    by_context: float
    """What a fault spends on the configured context."""
    drafts: float
    waiting: float = 0.0
    """In all-reduces, for the last rank."""

    @property
    def total(self) -> float:
        """Their sum."""
        return self.own + self.reduces + self.waiting

    @property
    def own(self) -> float:
        """What a rank computes itself."""
        gemms = self.projections + self.dense + self.experts + self.head
        attention = self.cache + self.unfused + self.prefill_attention
        planted = self.one_by_one + self.by_context
        return gemms + attention + self.layers + self.sampling + planted + self.drafts

    def of_rank(self, *, late: bool) -> "Parts":
        """The kernels of one rank: the late one works where the others wait in their all-reduces."""
        if not self.waiting:
            return self
        if not late:
            return msgspec.structs.replace(self, reduces=self.reduces + self.waiting, waiting=0.0)
        slower = 1 + self.waiting / self.own
        own = {name: slower * value for name, value in msgspec.structs.asdict(self).items()}
        return msgspec.structs.replace(self, **own | {"reduces": self.reduces, "waiting": 0.0})


class Cost(msgspec.Struct, frozen=True):
    """One forward: seconds on the wall and of the GPU at work; bytes and FLOPs of one rank."""

    wall_s: float
    gpu_s: float
    read_bytes: float
    flops: float
    parts: Parts


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
        routed = shape.expert_bytes * shape.experts_read(rows) * shape.expert_layers
        flops = 2 * shape.parameters_per_token * rows
        flops += 2 * shape.head_parameters * (work.decoding + len(work.parts))
        kv_bytes = shape.kv_bytes_per_token * work.live_tokens
        slower = self._over_reading(routed, flops, decode=not work.parts)
        plain_ms = 1e3 * slower / (self._gpu.bandwidth_bytes_s * known.weight_bandwidth_share)
        routed_ms = 1e3 * slower / (self._gpu.bandwidth_bytes_s * known.expert_bandwidth_share)
        context_ms = fault.context_us_per_ktoken * self._settings.context_length / 1e6
        cache_ms = 1e3 * kv_bytes / self._kv_rate(work.decoding) if work.decoding else 0.0
        unfused = fault.unfused_times > 1
        parts = Parts(
            projections=plain_ms * shape.attention_bytes,
            dense=plain_ms * shape.dense_bytes,
            experts=routed_ms * routed,
            head=plain_ms * shape.head_bytes,
            cache=0.0 if unfused else cache_ms,
            unfused=fault.unfused_times * cache_ms if unfused else 0.0,
            prefill_attention=sum(
                self._prefill_attention_ms(tokens, before) for tokens, before in work.parts
            ),
            layers=known.ms_per_layer * shape.layers + known.ms_per_expert_layer * shape.expert_layers,
            sampling=known.ms_per_sequence * work.decoding,
            reduces=self._reduce_ms(rows),
            one_by_one=fault.linear_ms * work.decoding,
            by_context=context_ms * work.decoding,
            drafts=known.draft_ms if spec and work.decoding else 0.0,
        )
        if fault.late_share:
            parts = msgspec.structs.replace(parts, waiting=fault.late_share * parts.own)
        read = shape.attention_bytes + shape.dense_bytes + shape.head_bytes + routed + kv_bytes
        return self._timed(parts, self._host_ms(work), read, flops, cold=bool(work.parts))

    def accepted(self) -> int:
        """Drafts that one verification accepts."""
        spec = self._settings.speculation
        count = 0
        while spec and count < spec.draft_tokens - 1 and self._random.random() < spec.accept_chance:
            count += 1
        return count

    def _over_reading(self, routed: float, flops: float, *, decode: bool) -> float:
        """How much longer the matrices take than reading them does: 1 unless their FLOPs bind."""
        known, shape, gpu = self._known, self._shape, self._gpu
        plain = shape.attention_bytes + shape.dense_bytes + shape.head_bytes
        read_s = plain / (gpu.bandwidth_bytes_s * known.weight_bandwidth_share)
        read_s += routed / (gpu.bandwidth_bytes_s * known.expert_bandwidth_share)
        share = known.decode_flops_share if decode else known.prefill_flops_share
        return max(1.0, flops / (peak_of(gpu, shape.math) * share) / read_s)

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

    def _reduce_ms(self, rows: int) -> float:
        tp, fault = self._settings.tp, self.disturbance
        if tp == 1:
            return 0.0
        # 10 us where nobody published a number: what small all-reduces take over PCIe.
        each_us = self._gpu.allreduce_us_common.get(tp, 10.0) + fault.exchange_us
        if fault.exchange_bytes_s:
            each_us += 1e6 * 2 * (tp - 1) / tp * 2 * rows * self._shape.hidden / fault.exchange_bytes_s
        return 2 * self._shape.layers * each_us / 1e3

    def _host_ms(self, work: Work) -> float:
        known, layers = self._known, self._shape.layers
        host_ms = known.host_ms + known.host_ms_per_sequence * work.decoding + self.disturbance.host_ms
        if not work.parts:
            return host_ms if work.graph else host_ms + known.eager_ms_per_layer * layers * self._eager
        if not self._settings.prefill_graphs:
            return host_ms + known.prefill_eager_ms_per_layer * layers * self._eager
        return host_ms + known.prefill_host_ms

    def _timed(self, parts: Parts, host_ms: float, read_bytes: float, flops: float, *, cold: bool) -> Cost:
        known, draw = self._known, self._random
        jitter = self._server * (1 + draw.gauss(0, known.step_jitter))
        gpu_ms = parts.total * jitter / self.disturbance.clock_share
        host_ms *= draw.lognormvariate(0, 0.05)
        if draw.random() < known.hiccup_share:
            host_ms += draw.expovariate(1 / known.hiccup_ms)
        wall_ms = max(gpu_ms, host_ms) if self._settings.overlap else gpu_ms + host_ms
        pause_s = self._cold.pop(0) if cold and self._cold else 0.0
        return Cost(wall_ms / 1e3 + pause_s, gpu_ms / 1e3, read_bytes, flops, parts)


def peak_of(gpu: Gpu, math: str) -> float:
    """FLOP/s of a type; tf32 runs at half the rate of bf16 on all GPUs here."""
    return gpu.peak("bf16") / 2 if math == "tf32" else gpu.peak(math)
