"""vLLM's periodic lines (`v1/metrics/loggers.py`, V0 `engine/metrics.py`, `v1/spec_decode/metrics.py`).

Every ten seconds an engine prints its state at that instant beside rates averaged over the interval, so ramps
and prefills are inside. Fields come and go with version; a line is read as key and value pairs. With
`--enable-logging-iteration-details` every forward has a line with its wall time.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache

from stepline.evidence.origin import Origin
from stepline.evidence.scheduler import DecodeReport, GraphUse

STATS = re.compile(
    r"(?:Engine (?P<engine>\d+)|(?P<summed>\d+) Engines Aggregated)?(?:: )?"
    r"Avg prompt throughput: (?P<rest>[\d.]+ tokens/s, .*)"
)
ITERATION = re.compile(
    r"(?:Engine (?P<engine>\d+): )?Iteration\((?P<i>\d+)\): (?P<ctx_reqs>\d+) context requests, "
    r"(?P<ctx_tokens>\d+) context tokens, (?P<gen_reqs>\d+) generation requests, "
    r"(?P<gen_tokens>\d+) generation tokens, iteration elapsed time: (?P<ms>[\d.]+) ms(?P<dummy> \(dummy\))?"
)
CACHE_TAIL = re.compile(r"KV cache usage: ([\d.]+)%")
GRAPH_ROW = re.compile(
    r"\|\s*(\d+)\s*\|\s*(\d+)\s*\|\s*\d+\s*\|\s*(?:CUDAGraphMode\.)?(NONE|PIECEWISE|FULL)\s*\|\s*(\d+)\s*\|"
)
_PAIR = re.compile(r"(?P<key>[A-Z][A-Za-z ]*?): (?P<value>-?\d+(?:\.\d+)?)(?P<unit>%?)")
_MEAN_LENGTH = re.compile(r"Mean acceptance length: ([\d.]+)")
_DRAFT_RATE = re.compile(r"(?:Avg )?Draft acceptance rate: ([\d.]+)(%?)")
_STAMP = re.compile(r"(?:(\d{4})-)?(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")
PROCESS = re.compile(r"\bEngineCore_?(?:DP)?(\d+)")
NO_YEAR = 1972
"""The year given to stamps without one: a leap year, so that every date exists."""


@lru_cache(maxsize=256)
def time_of(prefix: str) -> float | None:
    """Seconds since the epoch of the last stamp in a prefix; vLLM's own `MM-DD HH:MM:SS` has no year."""
    stamps = list(_STAMP.finditer(prefix[-300:]))
    if not stamps:
        return None
    last = stamps[-1]
    year = next((int(stamp[1]) for stamp in reversed(stamps) if stamp[1]), NO_YEAR)
    try:
        parts = [int(last[n]) for n in range(2, 7)]
        moment = datetime(year, parts[0], parts[1], parts[2], parts[3], parts[4], tzinfo=UTC)
    except ValueError:
        return None
    return moment.timestamp() + (float(f"0.{last[7]}") if last[7] else 0.0)


def parse_stats(line: str, seq: int, origin: Origin) -> DecodeReport | None:
    """The state of one engine, or of several added up; None for another or a damaged line."""
    found = STATS.search(line)
    if found is None:
        return None
    pairs = _pairs("Avg prompt throughput: " + found["rest"])
    if "Running" not in pairs:
        return None
    queued = pairs.get("Waiting", pairs.get("Pending"))
    return DecodeReport(
        seq=seq,
        origin=origin,
        time_s=time_of(line[: found.start()]),
        dp=int(found["engine"]) if found["engine"] else None,
        ranks_summed=max(1, int(found["summed"])) if found["summed"] else 1,
        instrument="interval",
        running=int(pairs["Running"]),
        queued=None if queued is None else int(queued),
        deferred=int(pairs["Deferred"]) if "Deferred" in pairs else None,
        retracted=int(pairs["Swapped"]) if "Swapped" in pairs else None,
        pool_usage=next((value for key, value in pairs.items() if is_pool(key)), None),
        tok_s=pairs.get("Avg generation throughput"),
        prefill_tok_s=pairs.get("Avg prompt throughput"),
        prefix_hit_share=pairs.get("Prefix cache hit rate"),
    )


def preemptions(line: str) -> int | None:
    """Requests preempted during the interval, where the line says so."""
    if "Preemptions" not in line:
        return None
    count = _pairs(line).get("Preemptions")
    return None if count is None else int(count)


def acceptance(line: str) -> tuple[float | None, float | None]:
    """(tokens per request and verify, the bonus included; accepted share of drafts) in a line on drafts."""
    length, rate = _MEAN_LENGTH.search(line), _DRAFT_RATE.search(line)
    share = None if rate is None else float(rate[1]) / (100 if rate[2] else 1)
    return (float(length[1]) if length else None), share


def parse_iteration(line: str, seq: int, origin: Origin) -> DecodeReport | None:
    """One forward with its wall time; None for other lines and for a dummy that keeps ranks in step."""
    found = ITERATION.search(line)
    if found is None or found["dummy"]:
        return None
    usage = CACHE_TAIL.search(line, found.end())
    process = PROCESS.search(line[: found.start()])
    engine = found["engine"] or (process[1] if process else None)
    running, made = int(found["gen_reqs"]), int(found["gen_tokens"])
    return DecodeReport(
        seq=seq,
        origin=origin,
        time_s=time_of(line[: found.start()]),
        dp=int(engine) if engine else None,
        instrument="step",
        running=running,
        step_ms=float(found["ms"]),
        prefill_tokens=int(found["ctx_tokens"]),
        pool_usage=float(usage[1]) / 100 if usage else None,
        # With speculation the engine schedules drafts too; how many were accepted is not in this line.
        tok_s=made / float(found["ms"]) * 1000 if made == running and float(found["ms"]) > 0 else None,
    )


def parse_graph_row(line: str, origin: Origin) -> GraphUse | None:
    """One row of the `--cudagraph-metrics` table."""
    row = GRAPH_ROW.search(line)
    if row is None:
        return None
    modes = {"NONE": "none", "PIECEWISE": "piecewise", "FULL": "full"}
    return GraphUse(
        origin=origin,
        tokens=int(row[1]),
        padded_tokens=int(row[2]),
        mode=modes[row[3]],  # type: ignore[arg-type]
        count=int(row[4]),
    )


def pairs_of(text: str) -> dict[str, re.Match[str]]:
    """Every `Key: value` by its key, the first of each; a number that may have been cut at the end is left out."""
    found: dict[str, re.Match[str]] = {}
    end = len(text.rstrip())
    for match in _PAIR.finditer(text):
        if match.end() == end and not match["unit"]:
            continue  # every unit follows its number, so this line was cut within it
        found.setdefault(match["key"], match)
    return found


def _pairs(text: str) -> Mapping[str, float]:
    """Values of the pairs, percentages as shares."""
    return {
        key: float(match["value"]) / (100 if match["unit"] else 1) for key, match in pairs_of(text).items()
    }


def is_pool(key: str) -> bool:
    """True for the key of the share of the pool in use."""
    return key.endswith("KV cache usage") and not key.startswith("CPU")
