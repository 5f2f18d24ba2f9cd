"""Tables that people and tools write, told by columns: load levels, step times, levers tried, GPU samples."""

import csv
import re
from collections.abc import Mapping, Sequence
from typing import Any

from stepline.errors import UnreadableEvidence
from stepline.evidence.gpu import GpuSample
from stepline.evidence.load import LeverTrial
from stepline.evidence.origin import Origin
from stepline.evidence.run import EvidenceFile, FileKind, Run
from stepline.sources.peek import Peek
from stepline.sources.readers import arms
from stepline.sources.readers.cells import number, whole
from stepline.sources.readers.columns import plain

Row = Mapping[str, Any]

# Column names by meaning, lower case, punctuation as `_`. The first column of a list that a row has is taken.
LEVER = ("lever", "change", "trial", "flag", "setting", "arm")
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
    "sm_clock_mhz": ("sm_clock_mhz", "sm_clock", "sm_mhz", "clocks_sm"),
    "memory_clock_mhz": ("memory_clock_mhz", "mem_clock_mhz", "mem_mhz", "clocks_mem"),
    "power_w": ("power_w", "power", "power_draw"),
    "temperature_c": ("temperature_c", "temp_c", "temperature_gpu"),
}


def recognises(peek: Peek) -> bool:
    """True for a comma, tab or semicolon separated table whose header names something known."""
    if peek.binary:
        return False
    header = peek.head.decode("utf-8", "replace").splitlines()[:1]
    return bool(header) and _kind([plain(name) for name in re.split(r"[,;\t]", header[0])]) is not None


def columns_of(peek: Peek) -> list[str]:
    """Column names of a file that is laid out as a table, whatever it holds; empty for other text."""
    lines = [] if peek.binary else peek.head.decode("utf-8", "replace").splitlines()[:3]
    if len(lines) < 2:
        return []
    delimiter = max(",;\t", key=lines[0].count)
    width = lines[0].count(delimiter)
    return (
        lines[0].split(delimiter) if width and all(line.count(delimiter) == width for line in lines) else []
    )


def read_table(peek: Peek) -> Run:
    """Read a CSV-like table.

    Raises:
        UnreadableEvidence: when no row can be read.
    """
    with peek.open() as stream:
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
        if _kind([plain(name) for name in document]) is not None:
            return [document]
    return None


def read_rows(rows: Sequence[Row], file: str, first_line: int | None = None) -> Run:
    """Turn rows into records of the one kind their columns name.

    Raises:
        UnreadableEvidence: when the columns name nothing that stepline knows.
    """
    plain_rows = [{plain(str(name)): value for name, value in row.items()} for row in rows]
    names = list(dict.fromkeys(name for row in plain_rows for name in row))
    kind = _kind(names)
    if kind is None:
        raise UnreadableEvidence(
            f"{file}: no column of a known kind among {', '.join(names[:12])}; name them for example "
            "'concurrency,tok_s,tpot_ms,ttft_ms', 'running,step_ms' or 'lever,running,before,after'"
        )
    origins = [
        Origin(file, index + first_line) if first_line else Origin(file, None, f"[{index}]")
        for index in range(len(plain_rows))
    ]
    if kind == "levels":
        return _read_levels(plain_rows, origins, file)
    pairs = zip(plain_rows, origins, strict=True)
    made = [record for row, origin in pairs if (record := _MAKERS[kind](row, origin)) is not None]
    evidence = EvidenceFile(
        path=file, kind=_TITLES[kind], records=len(made), damaged=len(plain_rows) - len(made)
    )
    fields: dict[str, Any] = {"files": (evidence,), kind: tuple(made)}
    return Run(**fields)


def _read_levels(rows: Sequence[Row], origins: Sequence[Origin], file: str) -> Run:
    levels, steps, trials = arms.levels_and_trials(rows, origins)
    if not levels and not steps and not trials:
        raise UnreadableEvidence(
            f"{file}: no row states a load level, a step or two arms that can be compared"
        )
    read = {record.origin for kind in (levels, steps, trials) for record in kind}
    evidence = EvidenceFile(
        path=file,
        kind=_TITLES["levels"],
        records=len(levels) + len(steps) + len(trials),
        damaged=sum(1 for origin in origins if origin not in read),
    )
    return Run(files=(evidence,), levels=tuple(levels), step_rows=tuple(steps), levers=tuple(trials))


def _kind(names: Sequence[str]) -> str | None:
    """The field of Run that a table with these columns fills."""
    has = set(names)

    def any_of(*groups: tuple[str, ...]) -> bool:
        return any(name in has for group in groups for name in group)

    if any_of(LEVER) and (any_of(CHANGE_PCT) or (any_of(BEFORE, BEFORE_MS) and any_of(AFTER, AFTER_MS))):
        return "levers"
    if arms.fits(names):
        return "levels"
    gpu_names = {_gpu_name(name) for name in names}
    groups = (*GPU_COLUMNS.values(), *PLAIN_GPU_COLUMNS.values())
    return "gpu_samples" if any(name in gpu_names for group in groups for name in group) else None


def _lever(row: Row, origin: Origin) -> LeverTrial | None:
    lever = next((str(row[name]).strip() for name in LEVER if row.get(name)), None)
    before, after, measure = number(row, BEFORE), number(row, AFTER), "tok_s"
    if before is None or after is None:
        before, after, measure = number(row, BEFORE_MS), number(row, AFTER_MS), "ms"
    change = number(row, CHANGE_PCT)
    if (before is None or after is None) and change is not None:
        before, after, measure = 100.0, 100.0 + change, "tok_s"
    if not lever or not before or not after:
        return None
    return LeverTrial(
        origin=origin,
        lever=lever,
        running=number(row, arms.RUNNING),
        concurrency=number(row, arms.CONCURRENCY),
        before=before,
        after=after,
        measure="ms" if measure == "ms" else "tok_s",
    )


def _gpu_name(name: str) -> str:
    """A counter's name without the tool before it and the unit or statistic behind it."""
    name = name.removeprefix("dcgm_").removeprefix("fi_prof_")
    return re.sub(r"(?:_(?:pct|median|mean|avg|max|sustained|mhz(?=_)|w(?=_)))+$", "", name)


def _gpu_sample(row: Row, origin: Origin) -> GpuSample:
    original = row
    row = {**{_gpu_name(name): value for name, value in row.items()}, **row}
    shares = {field: number(row, names) for field, names in GPU_COLUMNS.items()}
    reasons = whole(row, ("clock_event_reasons", "clocks_event_reasons", "throttle_reasons"))
    gpu = whole(row, ("gpu", "gpu_index", "index"))
    return GpuSample(
        origin=origin,
        time_s=number(row, ("unix_s", "time_s", "timestamp")),
        gpu=gpu or 0,
        clock_event_reasons=reasons,
        **{field: None if value is None else value / _whole_of(original) for field, value in shares.items()},
        **{field: number(row, names) for field, names in PLAIN_GPU_COLUMNS.items()},
    )


def _whole_of(row: Row) -> float:
    """What stands for all of the time: DCGM's fields are ratios of 1, NVML GPM and nvidia-smi write percent."""
    return 1.0 if any(name.startswith("dcgm_fi_prof") for name in row) else 100.0


_MAKERS: dict[str, Any] = {"levers": _lever, "gpu_samples": _gpu_sample}
_TITLES: dict[str, FileKind] = {
    "levers": "levers tried",
    "gpu_samples": "GPU samples",
    "levels": "load levels",
}
