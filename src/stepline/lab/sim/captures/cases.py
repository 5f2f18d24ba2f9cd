"""The matrix of simulated captures: faults, strengths, engines and seeds, under loads drawn from the seed."""

import random
from collections.abc import Iterator, Sequence

import msgspec

from stepline.lab.sim.captures.sweep import Beside, Level
from stepline.lab.sim.faults import FAULTS, PAIRS, Fault, find_fault

_SMALL = (
    ("meta-llama/Llama-3.1-8B", "h200", 1),
    ("Qwen/Qwen3-8B", "h100", 1),
    ("Qwen/Qwen3-8B", "h200", 1),
)
_SPREAD = (
    ("meta-llama/Llama-3.1-70B", "h100", 4),
    ("meta-llama/Llama-3.1-70B", "h200", 2),
    ("Qwen/Qwen3-32B", "h200", 2),
)
SYSTEMS = {
    "any": (*_SMALL, ("Qwen/Qwen3-32B", "h200", 1), ("Qwen/Qwen3-30B-A3B", "h200", 1), _SPREAD[0]),
    "dense": (*_SMALL, ("Qwen/Qwen3-32B", "h200", 1)),
    "small": _SMALL,
    "several ranks": _SPREAD,
}
"""Model, GPU, ranks by kind: each fits, and none is a favourite."""
FEW_LAYERS = 5
"""Of Llama-3.1-405B in the load "few wide layers": its layers keep a GPU busier than a host needs to launch them."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One simulated capture to be."""

    name: str
    engine: str
    fault: str
    """Its name; see `planted`."""
    strength: int
    seed: int
    model: str
    gpu: str
    tp: int
    layers: int | None
    """Fewer layers than the model has; None for all."""
    levels: tuple[Level, ...]

    @property
    def planted(self) -> Fault:
        """The fault itself, which cannot travel to another process."""
        return find_fault(self.fault)[0]


def cases(
    seed: int,
    *,
    engines: Sequence[str] = ("sglang", "vllm"),
    repeats: int = 1,
    healthy: int = 1,
    pairs: int = 0,
) -> Iterator[Case]:
    """Every fault at every strength on every engine, `repeats` times, and `healthy` times as often without one.

    Pairs of faults come `pairs` times.
    """
    for engine in engines:
        for first, second in PAIRS if pairs else ():
            both = find_fault(f"{first}+{second}")[0]
            for strength in both.strengths:
                for number in range(pairs):
                    yield _case(engine, both, strength, number, seed)
        for fault in FAULTS:
            times = repeats if fault.expected else repeats * healthy
            for strength in fault.strengths:
                for number in range(times):
                    yield _case(engine, fault, strength, number, seed)


def _case(engine: str, fault: Fault, strength: int, number: int, seed: int) -> Case:
    name = f"{engine}-{fault.name}-{strength}-{number}"
    draw = random.Random(f"{seed}/{name}")  # noqa: S311 - a simulation
    wide = fault.load == "few wide layers"
    model, gpu, tp = draw.choice(SYSTEMS[fault.systems])
    if wide:
        model, gpu, tp = "meta-llama/Llama-3.1-405B", "h200", 1
    return Case(
        name=name,
        engine=engine,
        fault=fault.name,
        strength=strength,
        seed=draw.randrange(2**31),
        model=model,
        gpu=gpu,
        tp=tp,
        layers=FEW_LAYERS if wide else None,
        levels=levels(fault.load, draw, engine, small=(model, gpu, tp) in _SMALL),
    )


def levels(load: str, draw: random.Random, engine: str, *, small: bool) -> tuple[Level, ...]:
    """The levels of a kind of load, lightest first; vLLM's log needs longer ones, with a line every ten seconds.

    Prompts beside the load come as often as a `small` or a larger model can compute them even in small chunks.
    """
    seconds = 22.0 if engine == "vllm" else 10.0
    inputs, outputs = draw.choice((256, 384, 512)), draw.choice((128, 192, 256))
    steps = draw.choice(((1, 4, 16, 48), (1, 8, 32, 64), (2, 8, 24, 64)))

    def level(
        streams: int, input_tokens: int = inputs, output_tokens: int = outputs, times: float = 1.0
    ) -> Level:
        return Level(
            concurrency=streams,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            seconds=seconds * times,
        )

    if load == "answers that grow":
        shape = (16_000, 4000) if engine == "vllm" else (256, 2048)
        streams = (4, 16) if engine == "vllm" else (16, 128)
        return tuple(level(n, *shape, times=5.0) for n in streams)
    if load == "few streams":
        return tuple(level(n) for n in draw.choice(((1, 4, 12, 40), (1, 8, 24), (2, 8, 16, 32))))
    if load == "long prompts beside":
        every_s, times = (2.0, 2.0) if small else (6.0, 4.0)
        beside = Beside(every_s=every_s, input_tokens=draw.choice((6000, 8000)), output_tokens=4)
        plain = (level(8, 128, 384, times), level(24, 128, 384, times))
        return (plain[1], *(msgspec.structs.replace(each, beside=beside) for each in plain))
    if load == "short and long contexts":
        long = draw.choice((16_000, 24_000))
        return (level(1, 512, 256), *(level(n, long, 256, times=3.0) for n in (1, 2, 4)))
    if load == "shared prefix":
        shared = int(inputs * draw.choice((0.6, 0.8, 0.95))) // 16 * 16
        return tuple(msgspec.structs.replace(level(n), shared_prefix_tokens=shared) for n in steps)
    if load == "cold, then again":
        first = tuple(msgspec.structs.replace(level(n), ramp=0.0) for n in (1, 8))
        return (*first, level(1), level(8))
    return tuple(level(n) for n in steps)
