"""SGLang's `Decode batch` and `Prefill batch` lines, every variant from 0.4.1 to 0.5.23.

The lines come from `srt/managers/scheduler.py` (up to 0.4.6), `scheduler_metrics_mixin.py` (0.4.10 to 0.5.12)
and `scheduler_components/metrics_reporter.py` (from 0.5.15). Fields come and go with version, pool kind,
speculation and disaggregation, so a line is read as key and value pairs, never by position.
"""

import re
from datetime import UTC, datetime

import msgspec

from stepline.evidence.origin import Origin
from stepline.evidence.scheduler import DecodeReport, PrefillReport

HEAD = re.compile(r"(?P<kind>Decode|Prefill) batch(?:\.| \[\d+\],|,)\s+(?P<pairs>.*)$")
PAIR = re.compile(
    r"(#?[A-Za-z][A-Za-z0-9 ._+/()-]*?):\s*(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?%?|nan%?|True|False)"
)
STAMP = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{3}))?")
RANK = re.compile(r"\b(DP|PP)(\d+)\b")
GRAPH_KEYS = ("cuda graph", "cpu graph", "npu graph", "musa graph")
POOL_TOKENS = ("#token", "#full token")
POOL_USAGES = ("token usage", "full token usage", "swa token usage", "mamba usage")


class Prefix(msgspec.Struct, frozen=True):
    """What stands before the message: time and rank tags."""

    time_s: float | None
    dp: int | None
    pp: int | None


def parse_prefix(text: str) -> Prefix:
    """Read time and rank tags from whatever precedes a message; the order of the tags does not matter."""
    stamp = STAMP.search(text)
    time_s = None
    if stamp:
        moment = datetime.fromisoformat(f"{stamp[1]}T{stamp[2]}").replace(tzinfo=UTC)
        time_s = moment.timestamp() + (int(stamp[3]) / 1000 if stamp[3] else 0.0)
    ranks = {name: int(number) for name, number in RANK.findall(text)}
    return Prefix(time_s, ranks.get("DP"), ranks.get("PP"))


def parse_pairs(text: str) -> dict[str, str]:
    """Every `key: value` of a batch line."""
    return {key.strip(): value for key, value in PAIR.findall(text)}


def parse_batch_line(line: str, seq: int, origin: Origin) -> DecodeReport | PrefillReport | None:
    """Read one batch line; None when it is no batch line or too damaged to say how many requests ran."""
    head = HEAD.search(line)
    if head is None:
        return None
    pairs = parse_pairs(head["pairs"])
    prefix = parse_prefix(line[: head.start()])
    if head["kind"] == "Decode":
        return _decode(pairs, prefix, seq, origin)
    return _prefill(pairs, prefix, seq, origin)


def _decode(pairs: dict[str, str], prefix: Prefix, seq: int, origin: Origin) -> DecodeReport | None:
    running = _int(pairs, "#running-req")
    if running is None:
        return None
    return DecodeReport(
        seq=seq,
        origin=origin,
        time_s=prefix.time_s,
        dp=prefix.dp,
        pp=prefix.pp,
        running=running,
        queued=_int(pairs, "#queue-req"),
        pool_tokens=next((value for key in POOL_TOKENS if (value := _int(pairs, key)) is not None), None),
        pool_usage=_fullest_pool(pairs),
        accept_length=_float(pairs, "accept len"),
        graph=_graph(pairs),
        tok_s=_float(pairs, "gen throughput (token/s)"),
        retracted=_int(pairs, "#retracted-req"),
        transferring=_int(pairs, "#transfer-req"),
        preallocated=_int(pairs, "#prealloc-req"),
        forward_busy=_float(pairs, "fwd occupancy"),
    )


def _prefill(pairs: dict[str, str], prefix: Prefix, seq: int, origin: Origin) -> PrefillReport | None:
    sequences, tokens = _int(pairs, "#new-seq"), _int(pairs, "#new-token")
    if sequences is None or tokens is None:
        return None
    inflight = [
        value for key in ("#inflight-req", "#transferring-req") if (value := _int(pairs, key)) is not None
    ]
    return PrefillReport(
        seq=seq,
        origin=origin,
        time_s=prefix.time_s,
        dp=prefix.dp,
        pp=prefix.pp,
        new_sequences=sequences,
        new_tokens=tokens,
        cached_tokens=_int(pairs, "#cached-token"),
        running=_int(pairs, "#running-req"),
        queued=_int(pairs, "#queue-req"),
        pending_tokens=_int(pairs, "#pending-token"),
        pool_usage=_fullest_pool(pairs),
        inflight=inflight[0] if inflight else None,
        graph=_graph(pairs),
    )


def _fullest_pool(pairs: dict[str, str]) -> float | None:
    usages = [value for key in POOL_USAGES if (value := _float(pairs, key)) is not None]
    return max(usages) if usages else None


def _graph(pairs: dict[str, str]) -> bool | None:
    return next((pairs[key] == "True" for key in GRAPH_KEYS if key in pairs), None)


def _int(pairs: dict[str, str], key: str) -> int | None:
    value = _float(pairs, key)
    return None if value is None else int(value)


def _float(pairs: dict[str, str], key: str) -> float | None:
    text = pairs.get(key)
    if text is None or text.startswith("nan") or text in ("True", "False"):
        return None
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)
