"""SGLang's `Decode batch` and `Prefill batch` lines, every variant from 0.4.1 to 0.5.23.

The lines come from `srt/managers/scheduler.py` (up to 0.4.6), `scheduler_metrics_mixin.py` (0.4.10 to 0.5.12)
and `scheduler_components/metrics_reporter.py` (from 0.5.15). Fields come and go with version, pool kind,
speculation and disaggregation, so a line is read as key and value pairs, never by position.
"""

import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from stepline.evidence.origin import Origin
from stepline.evidence.scheduler import DecodeReport, PrefillReport
from stepline.sources.engines.sglang.prefix import Prefix, parse_prefix

HEAD = re.compile(r"\b(?P<kind>Decode|Prefill) batch(?:\.| \[\d+\],|,)\s+")
PAIR = re.compile(
    r"(?P<key>#?[A-Za-z][A-Za-z0-9 ._+/()-]*?):\s*"
    r"(?P<value>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?%?|-?inf%?|nan%?|True|False)"
)
GRAPH_KEYS = ("cuda graph", "cpu graph", "npu graph", "musa graph")
POOL_TOKENS = ("#token", "#full token")
POOL_USAGES = ("token usage", "full token usage", "swa token usage", "mamba usage")
INFLIGHT = ("#inflight-req", "#transferring-req")
BOOTSTRAPPING = ("#bootstrap-req", "#unbootstrapped-req", "#prealloc-req")
KNOWN_KEYS = frozenset(
    (
        *GRAPH_KEYS,
        *POOL_TOKENS,
        *POOL_USAGES,
        *INFLIGHT,
        *BOOTSTRAPPING,
        *("#running-req", "#queue-req", "#retracted-req", "#transfer-req", "#host-receive-req"),
        *("#swa token", "mamba num", "#gpu token", "#cpu token", "pre-allocated usage"),
        *("accept len", "accept rate", "cap len", "block accept len", "gen throughput (token/s)"),
        *("#new-seq", "#new-token", "#cached-token", "cache hit rate", "#pending-token", "#replay-token"),
        *("#optimistic-req", "input throughput (token/s)", "fwd occupancy", "fwd+idle occupancy"),
    )
)
"""Keys that the engine prints, by which a wrapped line is told from chance matches in prose."""
RECORDS: dict[str, type[DecodeReport] | type[PrefillReport]] = {
    "Decode": DecodeReport,
    "Prefill": PrefillReport,
}
FIELDS: dict[str, dict[str, tuple[str, ...]]] = {
    "Decode": {
        "running": ("#running-req",),
        "queued": ("#queue-req",),
        "pool_tokens": POOL_TOKENS,
        "accept_length": ("accept len",),
        "accept_rate": ("accept rate",),
        "tok_s": ("gen throughput (token/s)",),
        "retracted": ("#retracted-req",),
        "transferring": ("#transfer-req",),
        "preallocated": ("#prealloc-req",),
        "forward_busy": ("fwd occupancy",),
    },
    "Prefill": {
        "new_sequences": ("#new-seq",),
        "new_tokens": ("#new-token",),
        "cached_tokens": ("#cached-token",),
        "running": ("#running-req",),
        "queued": ("#queue-req",),
        "pending_tokens": ("#pending-token",),
        "inflight": INFLIGHT,
        "bootstrapping": BOOTSTRAPPING,
        "tok_s": ("input throughput (token/s)",),
    },
}
"""By kind of line the fields of its record, each with the keys that it had in the releases."""
NEEDED = {"Decode": ("running",), "Prefill": ("new_sequences", "new_tokens")}
FRACTIONS = frozenset(("accept_length", "accept_rate", "tok_s", "forward_busy"))
"""Fields that are no counts."""
_WHOLE = re.compile(r"\.\d\d%?$|True$|False$")

Report = DecodeReport | PrefillReport


def parse_pairs(text: str) -> dict[str, str]:
    """Every `key: value` of a batch line; of a line that was cut short, only the pairs that are whole.

    Every release prints `#queue-req` in both lines. Where it is missing the line was cut, perhaps within the
    last number, and only a number with the engine's two decimals is known to be whole. A lone pair is what somebody
    quoted, not what a cut left.
    """
    pairs = PAIR.findall(text)
    # Of a key that comes twice, the first counts.
    found = {key.rstrip(): value for key, value in reversed(pairs)}
    if "#queue-req" in found or len(pairs) < 2:
        return found
    value = pairs[-1][1]
    if text.rstrip().endswith(value) and not _WHOLE.search(value):
        found = {name.rstrip(): number for name, number in reversed(pairs[:-1])}
    return found


def parse_batch_lines(line: str) -> Iterator[tuple[str, Prefix, dict[str, str]]]:
    """(kind, prefix, pairs) of each batch message in a line; a paste may have joined several."""
    heads = list(_heads(line))
    start = 0
    for index, head in enumerate(heads):
        end = heads[index + 1].start() if index + 1 < len(heads) else len(line)
        yield head["kind"], parse_prefix(line[start : head.start()]), parse_pairs(line[head.end() : end])
        start = head.end()


def _heads(line: str) -> Iterator[re.Match[str]]:
    """Where batch messages begin; a search for the common word is far faster than the pattern's own."""
    at = line.find(" batch")
    while at >= 0:
        for word in ("Decode", "Prefill"):
            if at >= len(word) and (head := HEAD.match(line, at - len(word))):
                yield head
        at = line.find(" batch", at + 1)


def to_report(kind: str, pairs: Mapping[str, str], prefix: Prefix, seq: int, origin: Origin) -> Report | None:
    """The record of one batch message; None when it does not say how many requests ran or were admitted."""
    fields: dict[str, Any] = {}
    for name, keys in FIELDS[kind].items():
        for key in keys:
            value = _float(pairs[key]) if key in pairs else None
            if value is not None and (name in FRACTIONS or abs(value) <= 2**53):
                fields[name] = value if name in FRACTIONS else int(value)
                break
    if not all(name in fields for name in NEEDED[kind]):
        return None
    return RECORDS[kind](
        seq=seq,
        origin=origin,
        time_s=prefix.time_s,
        dp=prefix.dp,
        pp=prefix.pp,
        pool_usage=_fullest_pool(pairs),
        graph=next((pairs[key] == "True" for key in GRAPH_KEYS if key in pairs), None),
        **fields,
    )


def _fullest_pool(pairs: Mapping[str, str]) -> float | None:
    usages = [value for key in POOL_USAGES if key in pairs and (value := _float(pairs[key])) is not None]
    return max(usages) if usages else None


def _float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        if not text.endswith("%"):
            return None
        value = float(text[:-1]) / 100
    return value if isfinite(value) else None
