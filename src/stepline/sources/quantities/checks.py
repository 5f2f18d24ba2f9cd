"""What the numbers of one operating point say of each other: arithmetic that holds on every server.

Little's law ties rate, latency and streams together; counts over a duration are rates; a request takes longer than its
first token. Where two numbers contradict each other one of them means something else than its name says.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

Point = Mapping[str, float]
"""Quantities of one operating point in base units: seconds, a second, requests, tokens. Absent means not stated."""

ABOVE = 1.35
"""Streams that rate and latency may account for, over those held open: means of the requests that ended stand beside
rates over the whole, which moved the product by up to a quarter in the recordings of tests/data."""
LEAST = 0.01
"""Least share of the streams that decodes: below, a rate over or a unit is of another order of magnitude."""
NEAR = 2.0
"""Factor within which a count over a duration is the rate that is stated: ramps and drains are inside one of them."""


class Law(NamedTuple):
    """Two ways to one number, and how far they may differ."""

    needs: tuple[str, ...]
    ratio: Callable[[Point], float]
    low: float
    high: float
    text: str
    """With {ratio} for how many times too large the first is."""


LAWS = (
    Law(
        ("tok_s", "tpot", "streams"),
        lambda p: p["tok_s"] * p["tpot"] / p["streams"],
        LEAST,
        ABOVE,
        "tokens a second times time per token make {ratio} times the streams held open",
    ),
    Law(
        ("requests_s", "e2e", "streams"),
        lambda p: p["requests_s"] * p["e2e"] / p["streams"],
        LEAST,
        ABOVE,
        "requests a second times latency make {ratio} times the streams held open",
    ),
    Law(
        ("tok_s", "requests_s", "output"),
        lambda p: p["tok_s"] / (p["requests_s"] * p["output"]),
        1 / NEAR,
        NEAR,
        "tokens a second are {ratio} times requests a second times output length",
    ),
    Law(
        ("requests_s", "requests", "duration"),
        lambda p: p["requests_s"] * p["duration"] / p["requests"],
        1 / NEAR,
        NEAR,
        "requests a second times duration make {ratio} times the requests counted",
    ),
    Law(
        ("tok_s", "output_sum", "duration"),
        lambda p: p["tok_s"] * p["duration"] / p["output_sum"],
        1 / NEAR,
        NEAR,
        "tokens a second times duration make {ratio} times the output tokens counted",
    ),
    Law(
        ("tpot", "own_tok_s"),
        lambda p: p["tpot"] * p["own_tok_s"],
        0.2,
        5.0,
        "time per token times a request's own rate is {ratio}, not about 1",
    ),
    Law(
        ("tok_s", "own_tok_s", "streams"),
        lambda p: p["tok_s"] / (p["own_tok_s"] * p["streams"]),
        LEAST,
        NEAR,
        "tokens a second are {ratio} times those of all streams together",
    ),
    Law(
        ("ttft", "e2e"),
        lambda p: p["ttft"] / p["e2e"],
        0.0,
        1.1,
        "the first token takes {ratio} times the whole request",
    ),
    Law(
        ("tpot", "output", "e2e"),
        lambda p: p["tpot"] * (p["output"] - 1) / p["e2e"],
        0.0,
        NEAR,
        "time per token times output length is {ratio} times the latency",
    ),
    Law(
        ("running", "streams"),
        lambda p: p["running"] / p["streams"],
        0.0,
        1.1,
        "the running batch is {ratio} times the streams held open",
    ),
    Law(
        ("step", "running", "engine_tok_s"),
        lambda p: p["step"] * p["engine_tok_s"] / p["running"],
        0.2,
        12.0,
        "a step's time times tokens a second is {ratio} times the batch",
    ),
)
TIMES = ("tpot", "ttft", "e2e", "step", "itl")


class Misfit(NamedTuple):
    """A law that a point breaks, and which of its quantities cannot be used."""

    text: str
    drop: frozenset[str]
    law: str
    """The law's own words, the same for every point."""


def ratios(point: Point) -> list[tuple[Law, float]]:
    """Every law that the point can be asked, with the ratio it gives."""
    return [
        (law, law.ratio(point))
        for law in LAWS
        if all(point.get(name, 0.0) > 0 for name in law.needs) and (law.ratio(point) or law.low == 0)
    ]


def holds(law: Law, ratio: float) -> bool:
    """True where the two ways meet."""
    return law.low <= ratio <= law.high


def misfits(point: Point) -> list[Misfit]:
    """The laws a point breaks. A quantity that another law confirms is kept, else none of the law's is."""
    asked = ratios(point)
    confirmed = {name for law, ratio in asked if holds(law, ratio) for name in law.needs}
    found = []
    for law, ratio in asked:
        if holds(law, ratio):
            continue
        doubtful = {name for name in law.needs if name not in confirmed} or set(law.needs)
        found.append(Misfit(law.text.format(ratio=f"{ratio:.3g}"), frozenset(doubtful), law.text))
    return found


def fits(point: Point, factor: float) -> bool | None:
    """Whether the point's times, multiplied by a factor, keep every law; None where no law can be asked of them."""
    scaled = {name: value * factor if name in TIMES else value for name, value in point.items()}
    asked = [(law, ratio) for law, ratio in ratios(scaled) if len(set(law.needs) & set(TIMES)) == 1]
    return all(holds(law, ratio) for law, ratio in asked) if asked else None
