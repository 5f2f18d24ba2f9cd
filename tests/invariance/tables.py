"""Tables made from the names that tools write, with random numbers that obey arithmetic."""

import random
import tomllib
from collections import defaultdict
from functools import cache
from importlib import resources
from typing import NamedTuple

from stepline.sources.quantities.quantity import Quantity, parse

Key = tuple[str | None, ...]


class Made(NamedTuple):
    """A table: names, rows of text, and what the names mean where tools have other names for it."""

    kind: str
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def key_of(quantity: Quantity) -> Key:
    """What two names must share to be synonyms."""
    return (
        quantity.what,
        quantity.statistic or "mean",
        quantity.unit,
        quantity.side,
        quantity.per,
        quantity.instrument,
    )


@cache
def synonyms() -> dict[Key, tuple[str, ...]]:
    """Names of the references by meaning, those with words of their own left out."""
    text = resources.files("stepline.sources.quantities").joinpath("references.toml").read_text("utf-8")
    found: dict[Key, set[str]] = defaultdict(set)
    for one in tomllib.loads(text)["reference"]:
        for name in one["names"]:
            quantity = parse(name)
            if quantity.what and not (quantity.unknown or quantity.arm or quantity.at) and "," not in name:
                found[key_of(quantity)].add(name)
    return {key: tuple(sorted(names)) for key, names in found.items()}


def sample(rng: random.Random) -> Made:
    """One table of a random kind."""
    return rng.choice((sweep, open_loop, states, steps, arms_in_rows, arms_in_columns, changes, gpu_samples))(
        rng
    )


def _number(rng: random.Random, value: float) -> str:
    return f"{value:.{rng.choice((2, 3))}f}"


def sweep(rng: random.Random) -> Made:
    """A closed loop at several concurrencies."""
    fixed, each = rng.uniform(4, 40), rng.uniform(0.05, 6)
    tokens = rng.choice((128, 256, 512))
    rows = []
    for streams in sorted(rng.sample((1, 2, 4, 8, 16, 32, 64, 128), rng.randint(2, 6))):
        running = min(streams, rng.choice((streams, 32)))
        tpot = fixed + each * running
        ttft = 60 + 12 * streams + (streams - running) / running * tokens * tpot
        rate = 1000 * running / tpot * 0.95
        rows.append((str(streams), *(_number(rng, one) for one in (rate, tpot, ttft)), str(tokens)))
    names = ("max_concurrency", "output_throughput", "mean_tpot_ms", "mean_ttft_ms", "random_output_len")
    return Made("sweep", names, tuple(rows))


def open_loop(rng: random.Random) -> Made:
    """A client that sends at a rate."""
    rows = []
    tokens = rng.choice((128, 256, 500))
    for rate in sorted(rng.sample((0.5, 1.0, 2.0, 4.0, 8.0), rng.randint(2, 4))):
        tpot = rng.uniform(20, 40) * (1 + rate / 4)
        ttft = rng.uniform(100, 900) * rate
        done = rate * rng.uniform(0.6, 1.0)
        latency = ttft + tpot * (tokens - 1)
        rows.append((str(rate), *(_number(rng, one) for one in (done * tokens, done, tpot, ttft, latency))))
    names = (
        "request_rate",
        "output_throughput",
        "request_throughput",
        "mean_tpot_ms",
        "mean_ttft_ms",
        "mean_e2el_ms",
    )
    return Made("open loop", names, tuple(rows))


def states(rng: random.Random) -> Made:
    """Levels with what the engine's gauges said."""
    room = rng.randint(5, 40)
    rows = []
    for streams in sorted({max(1, room // 2), room, room + rng.randint(2, room), 3 * room}):
        running = min(streams, room)
        usage = 97.0 * running / room
        tpot = rng.uniform(20, 30) * (1 if running < room else 2)
        rows.append(
            (str(streams), _number(rng, tpot), str(running), str(streams - running), _number(rng, usage))
        )
    names = (
        "max_concurrency",
        "mean_tpot_ms",
        "num_requests_running",
        "num_requests_waiting",
        "kv_cache_usage_perc",
    )
    return Made("states", names, tuple(rows))


def steps(rng: random.Random) -> Made:
    """A step for each batch."""
    fixed, each = rng.uniform(4, 60), rng.uniform(0.02, 30)
    batches = sorted(rng.sample((1, 2, 4, 8, 16, 24, 32, 64), rng.randint(2, 6)))
    rows = tuple((str(n), _number(rng, fixed + each * n)) for n in batches)
    return Made("steps", ("batch_size", "step_ms"), rows)


SETTINGS = (
    ("max_num_seqs", ("4", "16"), 2.4),
    ("max-running-requests", ("8", "64"), 3.1),
    ("max_model_len", ("131072", "1048576"), 0.4),
    ("enforce_eager", ("False", "True"), 0.3),
    ("cuda_graph_max_bs", ("16", "128"), 1.6),
    ("num_speculative_tokens", ("0", "3"), 0.7),
    ("gpu_memory_utilization", ("0.6", "0.9"), 1.5),
    ("string_cache", ("64", "512"), 2.0),
)


def arms_in_rows(rng: random.Random) -> Made:
    """Two servers that differ in one setting, at one or more loads; the effect may go either way."""
    setting, values, effect = rng.choice(SETTINGS)
    effect = effect if rng.random() < 0.7 else 1 / effect
    base = rng.uniform(40, 400)
    rows = []
    for streams in sorted(rng.sample((4, 8, 16, 32, 64), rng.randint(1, 3))):
        for value, factor in zip(values, (1.0, effect), strict=True):
            rate = base * factor * streams**0.5
            rows.append((value, str(streams), _number(rng, rate), _number(rng, 900 * streams / rate)))
    return Made(
        "arms in rows", (setting, "max_concurrency", "output_throughput", "mean_tpot_ms"), tuple(rows)
    )


def arms_in_columns(rng: random.Random) -> Made:
    """Two servers, a column each."""
    one, other = rng.choice(
        (("stock", "split"), ("triton", "flashinfer"), ("fp16", "fp32"), ("without_mtp", "with_mtp"))
    )
    effect = rng.choice((0.5, 0.9, 1.02, 1.3, 3.0))
    rows = []
    for streams in sorted(rng.sample((1, 2, 4, 8, 16), rng.randint(2, 4))):
        rate = rng.uniform(40, 80) * streams**0.7
        rows.append((str(streams), _number(rng, rate), _number(rng, rate * effect)))
    return Made("arms in columns", ("max_concurrency", f"{one}_tok_s", f"{other}_tok_s"), tuple(rows))


def changes(rng: random.Random) -> Made:
    """Changes by name, before and after."""
    names = rng.sample(("marlin", "MTP", "NCCL symmetric memory", "overlap schedule on", "flashinfer"), 3)
    rows = []
    for name in names:
        rate = rng.uniform(20, 60)
        rows.append((name, "8", _number(rng, rate), _number(rng, rate * rng.choice((0.8, 1.0, 1.05, 1.4)))))
    return Made("changes", ("change", "batch_size", "before", "after"), tuple(rows))


def gpu_samples(rng: random.Random) -> Made:
    """What nvidia-smi and DCGM count, under one tool's names."""
    names = (
        "timestamp",
        "index",
        "utilization.gpu [%]",
        "clocks.current.sm [MHz]",
        "power.draw [W]",
        "temperature.gpu",
    )
    rows = []
    for second in range(rng.randint(3, 8)):
        for gpu in (0, 1):
            clock = rng.choice((1980, 1755, 345))
            rows.append(
                (
                    str(1700000000 + second),
                    str(gpu),
                    str(rng.randint(0, 100)),
                    str(clock),
                    _number(rng, 300),
                    "61",
                )
            )
    return Made("GPU samples", names, tuple(rows))


def read_csv(text: str, kind: str, most: int = 40) -> Made | None:
    """A table that lies somewhere; None where it is ragged or has signs that other layouts use."""
    lines = [line for line in text.splitlines()[: most + 1] if line.strip()]
    delimiter = "\t" if lines and "\t" in lines[0] else ","
    cells = [tuple(one.strip() for one in line.split(delimiter)) for line in lines]
    if len(cells) < 2 or len(cells[0]) < 2 or any(len(row) != len(cells[0]) for row in cells):
        return None
    if any(sign in one for row in cells for one in row for sign in '|;"\t\n,') or not all(map(all, cells)):
        return None
    return Made(kind, cells[0], tuple(cells[1:]))
