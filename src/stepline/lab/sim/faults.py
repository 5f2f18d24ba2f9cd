"""The faults that can be planted, each in three strengths, and the look-alikes that cost nothing.

A fault says how the engine starts and how long things take, and under which kind of load it shows; whether and how
anybody recognises it is not this module's business. `expected` is what is true: the rule whose cause costs most.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from stepline.errors import UsageError
from stepline.lab.sim.settings import Settings, Speculation
from stepline.lab.sim.world import Disturbance


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """What a fault is measured against: the healthy server and the load to come."""

    step_ms: float
    """A healthy step at one running request."""
    streams: int
    """Requests that the heaviest load holds open."""
    need_tokens: int
    """KV tokens that all of them need at their longest."""


SERVED = Base(step_ms=5.0, streams=64, need_tokens=64 * 704)
"""The load that `lab serve` expects: 64 streams of 512 tokens in and 192 out; `start` fills in the step."""


class Start(msgspec.Struct, frozen=True):
    """How an engine is about to start."""

    settings: Settings
    disturbance: Disturbance
    base: Base

    def set(self, **values: Any) -> "Start":
        """With other settings."""
        return Start(msgspec.structs.replace(self.settings, **values), self.disturbance, self.base)

    def slow(self, **values: Any) -> "Start":
        """With other disturbances."""
        return Start(self.settings, msgspec.structs.replace(self.disturbance, **values), self.base)


STRENGTHS = (1, 2, 3)
SW_POWER_CAP, SW_THERMAL, HW_THERMAL = 0x4, 0x20, 0x40
"""Bits of NVML's clock event reasons."""


Plant = Callable[[Start, int], Start]
"""Plants a fault at a strength of 1 to 3."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Something wrong on purpose, or something that only looks so."""

    name: str
    """On the command line: a rule's code, or a word for a look-alike."""
    expected: str
    """The rule that should be named first; empty where nothing may be confirmed."""
    what: str
    plant: Plant
    finding: str = "healthy"
    """The rule's name, as labelled cases spell it."""
    also_true: tuple[str, ...] = ()
    """Codes that hold besides and cost less, or describe the same cause from another side."""
    load: str = "sweep"
    """The kind of load in `lab run`: see `cases.levels`."""
    systems: str = "any"
    """Which models and GPUs `lab run` draws it on: see `cases.SYSTEMS`."""
    strengths: tuple[int, ...] = STRENGTHS


def _set(**by_strength: tuple[Any, Any, Any]) -> Plant:
    """Planting by settings, one value for each strength."""
    return lambda start, n: start.set(**{name: each[n - 1] for name, each in by_strength.items()})


def _slow(**by_strength: tuple[Any, Any, Any]) -> Plant:
    """Planting by time that no setting tells."""
    return lambda start, n: start.slow(**{name: each[n - 1] for name, each in by_strength.items()})


def _all(*plants: Plant) -> Plant:
    def plant(start: Start, strength: int) -> Start:
        for each in plants:
            start = each(start, strength)
        return start

    return plant


def _cap(start: Start, strength: int) -> Start:
    most = (16, 8, 4)[strength - 1]
    return start.set(max_running=most, max_running_asked=most)


def _pool(*shares: float) -> Plant:
    """A pool of some share of what the load needs, in whole pages of both engines."""

    def plant(start: Start, strength: int) -> Start:
        tokens = int(start.base.need_tokens * shares[strength - 1]) // 16 * 16
        return start.set(kv_tokens=tokens, kv_tokens_asked=tokens)

    return plant


def _host(*shares: float) -> Plant:
    """More host time in every step, by shares of a healthy one."""
    return lambda start, n: start.slow(host_ms=start.base.step_ms * shares[n - 1])


def _each(*shares: float) -> Plant:
    """GPU time for each running request, by shares of a healthy step."""
    return lambda start, n: start.slow(linear_ms=start.base.step_ms * shares[n - 1])


def _each_by_context(*shares: float) -> Plant:
    """The same, in proportion to the configured context."""

    def plant(start: Start, strength: int) -> Start:
        us = 1e3 * start.base.step_ms * shares[strength - 1]
        return start.slow(context_us_per_ktoken=us / (start.settings.context_length / 1e3))

    return plant


def _slow_front(*shares: float) -> Plant:
    """A front end that needs these multiples of a healthy step to hand out one step of the heaviest load."""
    return lambda start, n: start.slow(
        front_us_per_token=1e3 * start.base.step_ms * shares[n - 1] / start.base.streams
    )


def _ceiling(start: Start, strength: int) -> Start:
    most = (24, 16, 8)[strength - 1]
    return start.set(graph_sizes=tuple(size for size in start.settings.graph_sizes if size <= most))


def _no_graphs(start: Start, strength: int) -> Start:  # noqa: ARG001 - of one form with the others
    return start.set(graph_sizes=())


def _drafts(algorithm: str, tokens: tuple[int, int, int], chances: tuple[float, float, float]) -> Plant:
    def plant(start: Start, strength: int) -> Start:
        spec = Speculation(
            algorithm=algorithm, draft_tokens=tokens[strength - 1], accept_chance=chances[strength - 1]
        )
        most = start.settings.max_running
        return start.set(
            speculation=spec, max_running=min(48, most) if start.settings.engine == "sglang" else most
        )

    return plant


def _untuned(start: Start, strength: int) -> Start:  # noqa: ARG001 - of one form with the others
    path = "E=128,N=640,device_name=NVIDIA_H200.json"
    block = "N=4096,K=4096,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128,128].json"
    return start.set(
        remarks=(
            f"Using default MoE kernel config. Performance might be sub-optimal! Config file not found at {path}",
            f"Using default W8A8 Block FP8 kernel config. Performance might be sub-optimal! {block} not found",
        )
    )


def _nothing(start: Start, strength: int) -> Start:  # noqa: ARG001 - of one form with the others
    return start


FAULTS: tuple[Fault, ...] = (
    Fault(name="healthy", expected="", what="nothing planted", plant=_nothing, strengths=(1,)),
    Fault(
        name="S201",
        expected="S201",
        finding="batch-capped",
        what="at most 16, 8 or 4 requests run",
        plant=_cap,
    ),
    Fault(
        name="S202",
        expected="S202",
        finding="kv-capacity-bound",
        also_true=("S203",),
        what="a KV pool of 45, 30 or 15 % of what the load needs",
        plant=_pool(0.45, 0.3, 0.15),
    ),
    Fault(
        name="S203",
        expected="S203",
        also_true=("S202",),
        finding="kv-preemption",
        what="a pool of 50, 40 or 30 % of the need, and an admission that does not foresee how answers grow",
        plant=_all(
            _pool(0.5, 0.4, 0.3),
            _set(
                conservativeness=(0.3, 0.2, 0.1),
                ratio_decay_steps=(20, 20, 20),
                reserve_whole_prompt=(False, False, False),
            ),
        ),
        load="answers that grow",
    ),
    Fault(
        name="S204",
        expected="S204",
        finding="prefill-interference",
        what="long prompts beside the load, prefilled 256, 128 or 64 tokens at a time",
        plant=_set(chunk_tokens=(256, 128, 64)),
        load="long prompts beside",
    ),
    Fault(
        name="S205",
        expected="S205",
        finding="spec-not-paying",
        what="n-gram drafts of 5, 8 or 11 tokens, hardly any accepted",
        plant=_drafts("NGRAM", (6, 9, 12), (0.15, 0.08, 0.02)),
        load="few streams",
    ),
    Fault(
        name="H301",
        expected="H301",
        finding="host-bound",
        what="no overlap of host and GPU, and a host 10, 40 or 100 % of a step slower",
        plant=_all(_set(overlap=(False, False, False)), _host(0.1, 0.4, 1.0)),
    ),
    Fault(
        name="H302",
        expected="H302",
        finding="cuda-graph-off",
        what="no decode graphs, on a host 0, 50 or 150 % of a step slower",
        plant=_all(_no_graphs, _host(0.0, 0.5, 1.5)),
    ),
    Fault(
        name="H303",
        expected="H303",
        finding="cuda-graph-uncovered-batch",
        what="decode graphs end at batch 24, 16 or 8",
        plant=_ceiling,
    ),
    Fault(
        name="H304",
        expected="H304",
        finding="frontend-bound",
        what="a front end that needs 2, 3 or 5 healthy steps to hand out the tokens of one",
        plant=_slow_front(2.0, 3.0, 5.0),
    ),
    Fault(
        name="K401",
        expected="K401",
        finding="context-capacity-work",
        also_true=("K403",),
        what="each request costs 5, 12 or 30 % of a healthy step, in proportion to the configured context",
        plant=_each_by_context(0.05, 0.12, 0.3),
    ),
    Fault(
        name="K402",
        expected="K402",
        finding="attention-occupancy",
        what="decode attention splits the KV of a request 4, 2 or 1 ways",
        plant=_set(kv_splits=(4, 2, 1), attention_backend=("triton", "triton", "triton")),
        load="short and long contexts",
        systems="dense",
    ),
    Fault(
        name="K403",
        expected="K403",
        finding="linear-step",
        what="each request costs 5, 12 or 30 % of a healthy step; the configured context is 2,048",
        plant=_all(_each(0.05, 0.12, 0.3), _set(context_length=(2048, 2048, 2048))),
    ),
    Fault(
        name="K404",
        expected="K404",
        finding="kernel-fallback",
        also_true=("K403",),
        what="decode attention operator by operator, 20, 40 or 70 times as slow as a fused kernel",
        plant=_slow(unfused_times=(20.0, 40.0, 70.0)),
    ),
    Fault(
        name="K405",
        expected="K405",
        finding="wrong-dtype",
        what="feed-forward weights in tf32; all weights in tf32; all in fp32, which leaves the tensor cores",
        plant=_all(
            _slow(
                wide_parts=(("dense",), ("attention", "dense", "head"), ("attention", "dense", "head")),
                wide_math=("tf32", "tf32", "fp32"),
            ),
            _set(dtype=("bfloat16", "float32", "float32")),
        ),
        systems="small",
    ),
    Fault(
        name="C501",
        expected="C501",
        finding="comm-bound",
        what="all-reduces over a path without peer access: 50, 100 or 250 us more, at 25, 12 or 4 GB/s",
        plant=_slow(exchange_us=(50.0, 100.0, 250.0), exchange_bytes_s=(25e9, 12e9, 4e9)),
        systems="several ranks",
    ),
    Fault(
        name="C502",
        expected="C502",
        finding="straggler-rank",
        what="the last rank's GPU works 25, 50 or 100 % longer than the others",
        plant=_slow(late_share=(0.25, 0.5, 1.0)),
        systems="several ranks",
    ),
    Fault(
        name="L102",
        expected="L102",
        finding="prefix-cache-distortion",
        what="every prompt shares all but its end with the others",
        plant=_nothing,
        load="shared prefix",
    ),
    Fault(
        name="L104",
        expected="L104",
        finding="cold-start",
        what="the first prompts wait 1.5, 3 or 6 s for kernels to be compiled, inside the measurement",
        plant=_slow(cold_s=((1.0, 0.5), (2.0, 1.0), (4.0, 2.0))),
        load="cold, then again",
    ),
    Fault(
        name="L105",
        expected="L105",
        finding="trace-integrity",
        what="a trace that is cut off, that lacks half the kernels of most steps, or that holds no GPU work",
        plant=_slow(trace_fault=("cut", "holes", "no kernels")),
    ),
    Fault(
        name="P601",
        expected="P601",
        finding="clock-throttle",
        what="a hot GPU at 70, 50 or 30 % of its clock",
        plant=_slow(clock_share=(0.7, 0.5, 0.3), clock_reasons=(SW_THERMAL, HW_THERMAL, HW_THERMAL)),
    ),
    Fault(
        name="warning-lines",
        expected="",
        what="warnings of untuned kernels that cost nothing",
        plant=_untuned,
        strengths=(1,),
    ),
    Fault(
        name="power-cap",
        expected="",
        what="the power limit shows in the GPU's flags and slows no step",
        plant=_slow(clock_reasons=(SW_POWER_CAP, SW_POWER_CAP, SW_POWER_CAP)),
        strengths=(1,),
    ),
    Fault(
        name="graphs-off-harmless",
        expected="",
        what="no decode graphs where few wide layers keep the GPU busier than the host",
        plant=_no_graphs,
        load="few wide layers",
        strengths=(1,),
    ),
    Fault(
        name="low-prefix-hit",
        expected="",
        what="unique prompts, which no prefix cache can help",
        plant=_nothing,
        strengths=(1,),
    ),
    Fault(
        name="drafts-paying",
        expected="",
        what="drafts that are mostly accepted",
        plant=_drafts("EAGLE3", (4, 4, 4), (0.8, 0.85, 0.9)),
        load="few streams",
    ),
    Fault(
        name="long-prompts",
        expected="",
        what="long prompts beside the load in ordinary chunks: prefill as such",
        plant=_nothing,
        load="long prompts beside",
        strengths=(1,),
    ),
)


PAIRS = (
    ("S201", "H301"),
    ("S201", "H302"),
    ("S201", "P601"),
    ("S201", "C501"),
    ("S202", "H302"),
    ("S202", "P601"),
    ("H302", "P601"),
    ("K401", "P601"),
    ("K405", "S201"),
    ("C501", "C502"),
)
"""Faults of one load that leave each other something to cost."""


def find_fault(text: str) -> tuple[Fault, int]:
    """The fault and strength of `CODE[+CODE][:strength]`; strength 2 where none is given, of both where there are two.

    Raises:
        UsageError: No fault has that name, or the strength is not 1, 2 or 3.
    """
    names, _, strength = text.partition(":")
    found = [_named(name) for name in names.split("+")]
    fault = found[0] if len(found) == 1 else _together(*found)
    if strength not in ("", *map(str, STRENGTHS)):
        raise UsageError(f"a fault's strength is 1, 2 or 3, not {strength!r}")
    return fault, int(strength or 2)


def _named(name: str) -> Fault:
    fault = next((fault for fault in FAULTS if fault.name.lower() == name.lower()), None)
    if fault is None:
        raise UsageError(f"no fault is called {name!r}; `stepline lab faults` lists them")
    return fault


def _together(*faults: Fault) -> Fault:
    """All of them in one server, under the load of the first and on a system that suits each."""
    systems = [fault.systems for fault in faults if fault.systems != "any"]
    return Fault(
        name="+".join(fault.name for fault in faults),
        expected="+".join(fault.expected for fault in faults),
        finding="+".join(fault.finding for fault in faults),
        what="; ".join(fault.what for fault in faults),
        plant=_all(*(fault.plant for fault in faults)),
        load=faults[0].load,
        systems=systems[0] if systems else "any",
    )
