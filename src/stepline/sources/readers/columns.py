"""What a column of somebody's table measures, told from its name: quantity, statistic, unit, arm and load.

`oneshot_tok_s` is a throughput of the arm `oneshot`, `median_tpot_ms` the median of TPOT,
`live_ctx_2048_x8_tok_s` a throughput at context 2048 and eight streams. A name that fits nothing is left
alone.
"""

import re
from typing import Literal

import msgspec

Quantity = Literal[
    "tok_s",
    "tok_s_per_request",
    "tpot",
    "itl",
    "ttft",
    "e2e",
    "step",
    "requests_s",
    "client_queue",
    "speedup_pct",
]

_TOKENS = r"(?:tok|toks|token|tokens|t)_(?:s|sec|per_s|per_sec|per_second)"
QUANTITIES: tuple[tuple[Quantity, re.Pattern[str]], ...] = (
    ("speedup_pct", re.compile(r"(?P<arm>\w+?)_faster_than_(?P<base>\w+?)_pct")),
    (
        "tok_s_per_request",
        re.compile(
            rf"(?:per_(?:request|user|req)_{_TOKENS}|(?:{_TOKENS}|tps)_(?:per_)?(?:request|user|req)|interactivity)"
        ),
    ),
    ("requests_s", re.compile(r"qps|rps|req_s|requests_(?:s|per_s|per_second)|request_throughput")),
    ("tok_s", re.compile(rf"(?:{_TOKENS}(?:_per_gpu)?|tps|output_throughput|throughput)(?:_tok_s)?")),
    ("ttft", re.compile(r"ttft|time_to_first_token")),
    ("tpot", re.compile(r"tpot|time_per_output_token")),
    ("itl", re.compile(r"itl|inter_token_latency|chunk_gap")),
    ("client_queue", re.compile(r"dispatch_delay|client_queue(?:_time)?")),
    ("step", re.compile(r"(?:decode_)?step(?:_time)?(?=_ms|_s|_us|$)|ms_per_step")),
    ("e2e", re.compile(r"e2el?(?:_latency)?|latency|lat")),
)
STATISTICS = {
    "mean": "mean",
    "avg": "mean",
    "average": "mean",
    "median": "p50",
    "p50": "p50",
    "p99": "p99",
    **dict.fromkeys(
        ("p1", "p5", "p10", "p25", "p75", "p90", "p95", "p999", "min", "max", "std", "stddev"), "other"
    ),
}
MS_IN = {"ms": 1.0, "s": 1000.0, "sec": 1000.0, "us": 0.001}
FILLERS = frozenset(
    (
        *(
            "output",
            "aggregate",
            "agg",
            "total",
            "decode",
            "client",
            "gen",
            "generation",
            "server",
            "reported",
        ),
        *("overall", "system", "log", "implied", "measured", "live", "at", "single", "stream"),
    )
)
NOT_DECODE = frozenset(("prefill", "prompt", "input", "accepted", "drafted", "draft"))
_LOAD = re.compile(r"^(?:c|x|bs|b|n|conc|concurrency)(\d+)$")
_CONTEXT = re.compile(r"(?:^|_)(?:ctx|context)_(\d+)(?=_|$)")
_RATES = ("tok_s", "tok_s_per_request", "requests_s", "speedup_pct")


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One measuring column; `factor` turns its numbers into ms, or is 1 for rates."""

    name: str
    quantity: Quantity
    statistic: Literal["mean", "p50", "p99"]
    factor: float = 1.0
    arm: str | None = None
    base: str | None = None
    streams: float | None = None
    context: float | None = None


def plain(name: str) -> str:
    """Lower case, punctuation as `_`, a per cent sign as `pct`: `Output tok/s` is `output_tok_s`."""
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower().replace("%", " pct ")).strip("_")


def understand(name: str) -> Column | None:
    """The column behind a plain name; None when it measures nothing known, or cannot be told."""
    for quantity, pattern in QUANTITIES:
        found = re.search(rf"(?:^|_)(?:{pattern.pattern})(?=_|$)", name)
        if found is None:
            continue
        if quantity == "speedup_pct":
            return Column(
                name=name, quantity=quantity, statistic="mean", arm=found["arm"], base=found["base"]
            )
        return _column(name, quantity, name[: found.start()].strip("_"), name[found.end() :].strip("_"))
    return None


def _column(name: str, quantity: Quantity, before: str, after: str) -> Column | None:
    context = _CONTEXT.search(before)
    words = _CONTEXT.sub("", before).split("_") if before else []
    tail = after.split("_") if after else []
    statistic = "mean"
    streams: float | None = None
    arm: list[str] = []
    for word in words:
        if word in STATISTICS:
            statistic = STATISTICS[word]
        elif word in NOT_DECODE:
            return None
        elif load := _LOAD.match(word):
            streams = float(load[1])
        elif word and word not in FILLERS:
            arm.append(word)
    factor = 1.0 if quantity in _RATES else _unit(name, tail)
    for word in tail:
        if word in STATISTICS:
            statistic = STATISTICS[word]
        elif word not in MS_IN:
            return None  # a qualifier after the quantity changes what it is
    if statistic == "other" or factor is None:
        return None
    return Column(
        name=name,
        quantity=quantity,
        statistic=statistic,  # type: ignore[arg-type]
        factor=factor,
        arm="_".join(arm) or None,
        streams=streams,
        context=float(context[1]) if context else None,
    )


def _unit(name: str, tail: list[str]) -> float | None:
    """Ms in one of the column's unit. InferenceX writes vLLM's names without unit, and then means seconds."""
    for word in tail:
        if word in MS_IN:
            return MS_IN[word]
    if name == "ms_per_step":
        return 1.0
    return 1000.0 if re.match(r"(?:mean|median|p\d+)_(?:ttft|tpot|itl|e2el)$", name) else None
