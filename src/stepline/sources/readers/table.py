"""Tables that people and tools write, told by columns: load levels, step times, levers tried, GPU samples."""

import csv
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from stepline.errors import UnreadableEvidence
from stepline.evidence.gpu import GpuSample
from stepline.evidence.load import LeverTrial, LoadLevel, StepRow
from stepline.evidence.origin import Origin
from stepline.evidence.run import EvidenceFile, Run
from stepline.sources.peek import Peek, open_bytes

Row = Mapping[str, Any]

# Column names by meaning, lower case, punctuation as `_`. The first column of a list that a row has is taken.
CONCURRENCY = (
    "c",
    "concurrency",
    "max_concurrency",
    "clients",
    "streams",
    "concurrent_requests",
    "num_concurrent",
)
TOK_S = (
    "tok_s",
    "output_throughput",
    "output_tok_s",
    "tokens_per_s",
    "tokens_per_second",
    "throughput_tok_s",
    "agg_tok_s",
)
TOK_S_PER_REQUEST = (
    "tok_s_per_request",
    "per_request_tok_s",
    "tok_s_per_user",
    "per_user_tok_s",
    "tok_s_user",
)
TPOT_MS = ("tpot_ms", "median_tpot_ms", "mean_tpot_ms")
TTFT_MS = ("ttft_ms", "median_ttft_ms", "mean_ttft_ms")
ITL_MS = ("itl_ms", "chunk_gap_ms", "median_itl_ms", "mean_itl_ms")
E2E_MS = ("e2e_ms", "mean_e2el_ms", "median_e2el_ms", "mean_e2e_latency_ms")
REQUESTS = ("requests", "completed", "num_prompts", "successful_requests")
FAILED = ("failed", "errors", "num_failed", "failed_requests")
DURATION_S = ("duration_s", "duration")
INPUT_TOKENS = ("input_tokens", "isl", "random_input_len", "prompt_tokens", "input_len")
OUTPUT_TOKENS = ("output_tokens", "osl", "random_output_len", "output_len")
RUNNING = (
    "running",
    "running_req",
    "num_running",
    "batch",
    "batch_size",
    "bs",
    "n",
    "running_batch",
    "running_median",
)
QUEUED = ("queued", "waiting", "queue", "queue_req")
POOL_USAGE = ("pool_usage", "kv_usage", "token_usage")
POOL_USAGE_PCT = ("kv_usage_pct", "kv_usage_percent")
STEP_MS = ("step_ms", "step_time_ms", "decode_step_ms")
CONTEXT = ("context", "context_tokens", "live_context", "ctx")
GRAPH = ("graph", "cuda_graph")
LEVER = ("lever", "change", "arm", "trial", "flag", "setting")
BEFORE = ("before", "before_tok_s", "baseline", "baseline_tok_s", "off", "off_tok_s")
AFTER = ("after", "after_tok_s", "on", "on_tok_s", "changed_tok_s")
BEFORE_MS = ("before_ms", "baseline_ms")
AFTER_MS = ("after_ms", "changed_ms")
CHANGE_PCT = ("change_pct", "gain_pct", "delta_pct", "speedup_pct")
GPU_COLUMNS: dict[str, tuple[str, ...]] = {
    "graphics_busy": ("graphics_util", "gr_engine_active", "graphics_busy"),
    "sm_busy": ("sm_util", "sm_active"),
    "sm_occupancy": ("sm_occupancy",),
    "tensor_busy": ("any_tensor_util", "tensor_active", "pipe_tensor_active", "tensor_util", "tensor_pipe"),
    "fp32_busy": ("fp32_util", "fp32_active"),
    "dram_busy": ("dram_bw_util", "dram_active", "dram_util"),
}
PLAIN_GPU_COLUMNS: dict[str, tuple[str, ...]] = {
    "sm_clock_mhz": ("sm_clock_mhz", "sm_clock"),
    "memory_clock_mhz": ("memory_clock_mhz", "mem_clock_mhz"),
    "power_w": ("power_w", "power"),
    "temperature_c": ("temperature_c", "temp_c"),
}


def recognises(peek: Peek) -> bool:
    """True for a comma, tab or semicolon separated table whose header names something known."""
    if peek.binary:
        return False
    header = peek.head.decode("utf-8", "replace").splitlines()[:1]
    return bool(header) and _kind([_plain(name) for name in re.split(r"[,;\t]", header[0])]) is not None


def read_table(peek: Peek) -> Run:
    """Read a CSV-like table.

    Raises:
        UnreadableEvidence: when no row can be read.
    """
    with open_bytes(peek.path) as stream:
        lines = stream.read(256 << 20).decode("utf-8", "replace").splitlines()
    delimiter = max(",;\t", key=lines[0].count)
    reader = csv.DictReader(lines, delimiter=delimiter)
    return read_rows(list(reader), peek.name, first_line=2)


def rows_of(document: Any) -> list[Row] | None:
    """The rows of a JSON document: a list of objects, or an object that holds one under a plain name."""
    if isinstance(document, list) and document and all(isinstance(row, Mapping) for row in document):
        return document
    if isinstance(document, Mapping):
        for name in ("rows", "results", "levels", "sweep", "data"):
            if (inner := rows_of(document.get(name))) is not None:
                return inner
        if _kind([_plain(name) for name in document]) is not None:
            return [document]
    return None


def read_rows(rows: Sequence[Row], file: str, first_line: int | None = None) -> Run:
    """Turn rows into records of the one kind their columns name.

    Raises:
        UnreadableEvidence: when the columns name nothing that stepline knows.
    """
    plain = [{_plain(str(name)): value for name, value in row.items()} for row in rows]
    names = sorted({name for row in plain for name in row})
    kind = _kind(names)
    if kind is None:
        raise UnreadableEvidence(
            f"{file}: no column of a known kind among {', '.join(names[:12])}; name them for example "
            "'concurrency,tok_s,tpot_ms,ttft_ms', 'running,step_ms' or 'lever,running,before,after'"
        )
    made: list[Any] = []
    damaged = 0
    for index, row in enumerate(plain):
        origin = Origin(file, index + first_line) if first_line else Origin(file, None, f"[{index}]")
        record = _MAKERS[kind](row, origin)
        if record is None:
            damaged += 1
        else:
            made.append(record)
    evidence = EvidenceFile(path=file, kind=_TITLES[kind], records=len(made), damaged=damaged)
    fields: dict[str, Any] = {"files": (evidence,), kind: tuple(made)}
    return Run(**fields)


def _kind(names: Sequence[str]) -> str | None:
    """The field of Run that a table with these columns fills."""
    has = set(names)

    def any_of(*groups: tuple[str, ...]) -> bool:
        return any(name in has for group in groups for name in group)

    if any_of(LEVER) and (any_of(CHANGE_PCT) or (any_of(BEFORE, BEFORE_MS) and any_of(AFTER, AFTER_MS))):
        return "levers"
    if sum(any_of(columns) for columns in (*GPU_COLUMNS.values(), *PLAIN_GPU_COLUMNS.values())) >= 1:
        return "gpu_samples"
    if any_of(CONCURRENCY) and any_of(TOK_S, TOK_S_PER_REQUEST, TPOT_MS, TTFT_MS, ITL_MS, E2E_MS):
        return "levels"
    if any_of(RUNNING) and any_of(STEP_MS, TOK_S, TPOT_MS):
        return "step_rows" if any_of(STEP_MS, TOK_S) else "levels"
    return None


def _level(row: Row, origin: Origin) -> LoadLevel | None:
    tok_s = _number(row, TOK_S)
    usage, usage_pct = _number(row, POOL_USAGE), _number(row, POOL_USAGE_PCT)
    level = LoadLevel(
        origin=origin,
        concurrency=_number(row, CONCURRENCY),
        # A level without a steady window is written as 0.0 by the tools, and that is no measurement.
        tok_s=tok_s or None,
        tok_s_per_request=_number(row, TOK_S_PER_REQUEST) or None,
        tpot_ms=_number(row, TPOT_MS) or None,
        ttft_ms=_number(row, TTFT_MS) or None,
        itl_ms=_number(row, ITL_MS) or None,
        e2e_ms=_number(row, E2E_MS) or None,
        requests=_whole(row, REQUESTS),
        failed=_whole(row, FAILED),
        duration_s=_number(row, DURATION_S),
        input_tokens=_number(row, INPUT_TOKENS),
        output_tokens=_number(row, OUTPUT_TOKENS),
        running=_number(row, RUNNING),
        queued=_number(row, QUEUED),
        pool_usage=usage if usage is not None else (None if usage_pct is None else usage_pct / 100),
    )
    return level if level.concurrency or level.running else None


def _step_row(row: Row, origin: Origin) -> StepRow | None:
    running = _number(row, RUNNING)
    step, tok_s = _number(row, STEP_MS), _number(row, TOK_S)
    if not running or not (step or tok_s):
        return None
    graph = next((str(row[name]).strip().lower() for name in GRAPH if name in row), None)
    return StepRow(
        origin=origin,
        running=running,
        step_ms=step or None,
        tok_s=tok_s or None,
        context_tokens=_number(row, CONTEXT),
        graph=None if graph is None else graph in ("true", "1", "yes", "on"),
    )


def _lever(row: Row, origin: Origin) -> LeverTrial | None:
    lever = next((str(row[name]).strip() for name in LEVER if row.get(name)), None)
    before, after, measure = _number(row, BEFORE), _number(row, AFTER), "tok_s"
    if before is None or after is None:
        before, after, measure = _number(row, BEFORE_MS), _number(row, AFTER_MS), "ms"
    change = _number(row, CHANGE_PCT)
    if (before is None or after is None) and change is not None:
        before, after, measure = 100.0, 100.0 + change, "tok_s"
    if not lever or not before or not after:
        return None
    return LeverTrial(
        origin=origin,
        lever=lever,
        running=_number(row, RUNNING),
        concurrency=_number(row, CONCURRENCY),
        before=before,
        after=after,
        measure="ms" if measure == "ms" else "tok_s",
    )


def _gpu_sample(row: Row, origin: Origin) -> GpuSample:
    shares = {field: _number(row, names) for field, names in GPU_COLUMNS.items()}
    reasons = _whole(row, ("clock_event_reasons", "clocks_event_reasons", "throttle_reasons"))
    gpu = _whole(row, ("gpu", "gpu_index", "index"))
    return GpuSample(
        origin=origin,
        time_s=_number(row, ("unix_s", "time_s", "timestamp")),
        gpu=gpu or 0,
        clock_event_reasons=reasons,
        # NVML GPM and nvidia-smi write percent.
        **{field: None if value is None else value / 100 for field, value in shares.items()},
        **{field: _number(row, names) for field, names in PLAIN_GPU_COLUMNS.items()},
    )


_MAKERS: dict[str, Any] = {
    "levels": _level,
    "step_rows": _step_row,
    "levers": _lever,
    "gpu_samples": _gpu_sample,
}
_TITLES = {
    "levels": "load levels",
    "step_rows": "step times",
    "levers": "levers tried",
    "gpu_samples": "GPU samples",
}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower().replace("%", " pct ")).strip("_")


def _number(row: Row, names: tuple[str, ...]) -> float | None:
    for name in names:
        value = row.get(name)
        if value is None or isinstance(value, bool):
            continue
        if isinstance(value, int | float):
            return float(value) if math.isfinite(value) else None
        text = str(value).strip().rstrip("%").replace(",", "")
        try:
            number = float(text)
        except ValueError:
            continue
        return number if math.isfinite(number) else None
    return None


def _whole(row: Row, names: tuple[str, ...]) -> int | None:
    value = _number(row, names)
    return None if value is None else int(value)
