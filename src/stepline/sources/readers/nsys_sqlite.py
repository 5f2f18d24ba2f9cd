"""Reads an Nsight Systems sqlite export; every table and column is optional (versions and options differ)."""

import sqlite3
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from stepline.errors import UnreadableEvidence
from stepline.evidence.trace import TraceDevice, TraceDoubt
from stepline.evidence.trace_arrays import (
    COPY,
    FILL,
    KERNEL,
    Calls,
    Column,
    GpuWork,
    Operators,
    RawTrace,
    Spans,
)

_KERNEL, _COPY, _FILL = (f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET"))
_LAUNCH = (
    "demangledName", "shortName", "registersPerThread", "staticSharedMemory", "dynamicSharedMemory",
    "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
)  # fmt: skip
_CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"


def read(path: Path) -> list[RawTrace]:
    """One RawTrace a process and GPU with work, ranks numbered by device.

    Raises:
        UnreadableEvidence: when the database holds no CUDA activity.
    """
    database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        return _Export(path, database).traces()
    except sqlite3.DatabaseError as error:
        raise UnreadableEvidence(f"{path} is not a readable Nsight Systems export: {error}") from error
    finally:
        database.close()


class _Export:
    """One open database."""

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        self.path, self.database = path, database
        tables = database.execute("select name from sqlite_master where type = 'table'").fetchall()
        self.columns = {
            name: {row[1] for row in database.execute(f'pragma table_info("{name}")')} for (name,) in tables
        }
        self.index: dict[str, int] = {}
        rows = self._rows("StringIds", "id", "value")
        self.texts = {number: self._text(str(value)) for number, value in rows}

    def _text(self, value: str) -> int:
        return self.index.setdefault(value, len(self.index))

    def _rows(self, table: str, *names: str) -> list[tuple[object, ...]]:
        """The named columns of a table, None for a column it lacks; nothing for a table that is not there."""
        have = self.columns.get(table, set())
        if not have:
            return []
        wanted = ", ".join(f'"{name}"' if name in have else "null" for name in names)
        return self.database.execute(f'select {wanted} from "{table}"').fetchall()  # noqa: S608 - own names

    def traces(self) -> list[RawTrace]:
        gpu, process = self._gpu()
        if not len(gpu):
            raise UnreadableEvidence(
                f"{self.path} holds no CUDA kernels, copies or fills: export it with CUDA "
                "tracing (nsys profile -t cuda)"
            )
        calls, call_process = self._calls()
        marks, mark_process = self._marks()
        groups = sorted(set(zip(process.tolist(), gpu.device.tolist(), strict=True)), key=lambda key: key[1])
        none = np.zeros(0, np.int64)
        found = []
        for number, (owner, device) in enumerate(groups):
            mine = (process == owner) & (gpu.device == device)
            found.append(
                RawTrace(
                    file=str(self.path),
                    rank=number if len(groups) > 1 else None,
                    world_size=len(groups) if len(groups) > 1 else None,
                    base_ns=self._base(),
                    devices=self._devices(),
                    with_stack=None,
                    record_shapes=None,
                    gpu=GpuWork(**{name: getattr(gpu, name)[mine] for name in gpu.__dataclass_fields__}),
                    calls=_pick(calls, call_process == owner),
                    operators=Operators(
                        name=none,
                        start_ns=none,
                        end_ns=none,
                        thread=none,
                        external=none,
                        shapes=none,
                        dtypes=none,
                    ),
                    frames=Spans(name=none, start_ns=none, end_ns=none, thread=none),
                    marks=_pick(marks, mark_process == owner),
                    overheads=Spans(name=none, start_ns=none, end_ns=none, thread=none),
                    strings=list(self.index),
                    events=len(gpu) + len(calls) + len(marks),
                    skipped=0,
                    raw_bytes=self.path.stat().st_size,
                    doubts=self._doubts(),
                )
            )
        return found

    def _gpu(self) -> tuple[GpuWork, Column]:
        """All GPU rows ordered by start, and the process of each."""
        shared = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "graphNodeId")
        found: list[list[int]] = []
        for source, sort, own in (
            (_KERNEL, KERNEL, _LAUNCH),
            (_COPY, COPY, ("bytes",)),
            (_FILL, FILL, ("bytes",)),
        ):
            rows = self._rows(source, *shared, *own)
            found += [self._gpu_row(sort, row) for row in rows if row[0] is not None and row[1] is not None]
        table = np.array(found or np.zeros((0, 20)), np.int64)
        table = table[np.argsort(table[:, 1], kind="stable")]
        c = list(table.T)
        count = len(table)
        return GpuWork(
            name=c[0], start_ns=c[1], end_ns=c[2], sort=c[3], device=c[4], stream=c[5], correlation=c[6],
            operator=np.full(count, -1), registers=c[8], shared_bytes=c[9], grid=table[:, 10:13],
            block=table[:, 13:16], moved_bytes=c[16], graph_node=c[17], collective=np.full(count, -1),
        ), c[18]  # fmt: skip

    def _gpu_row(self, sort: int, row: tuple[object, ...]) -> list[int]:
        values = [int(value) if isinstance(value, int) else -1 for value in row]
        start, end, device, stream, correlation, process, node = values[:7]
        if sort == KERNEL:
            name = self.texts.get(row[7], self.texts.get(row[8], self._text("?")))
            registers, static, dynamic = values[9:12]
            shared = static + dynamic if min(static, dynamic) >= 0 else -1
            return [name, start, end, sort, device, stream, correlation, -1, registers, shared,
                    *values[12:18], -1, node, process, 0]  # fmt: skip
        name = self._text("memcpy" if sort == COPY else "memset")
        return [
            name,
            start,
            end,
            sort,
            device,
            stream,
            correlation,
            -1,
            -1,
            -1,
            *(-1,) * 6,
            values[7],
            node,
            process,
            0,
        ]

    def _calls(self) -> tuple[Calls, Column]:
        rows = self._rows(_CALLS, "start", "end", "globalTid", "correlationId", "nameId")
        kept = [
            (self.texts.get(r[4], self._text("?")), r[0], r[1], r[2] if isinstance(r[2], int) else -1,
             r[3] if isinstance(r[3], int) else -1)
            for r in rows if r[0] is not None and r[1] is not None
        ]  # fmt: skip
        table = np.array(kept or np.zeros((0, 5)), np.int64)
        c = list(table[np.argsort(table[:, 1], kind="stable")].T)
        return Calls(name=c[0], start_ns=c[1], end_ns=c[2], thread=c[3], correlation=c[4]), _process(c[3])

    def _marks(self) -> tuple[Spans, Column]:
        """NVTX ranges with text."""
        kept = []
        for start, end, thread, text, number in self._rows(
            "NVTX_EVENTS", "start", "end", "globalTid", "text", "textId"
        ):
            name = self._text(str(text)) if text else self.texts.get(number, -1)
            if start is not None and end is not None and name >= 0:
                kept.append((name, start, end, thread if isinstance(thread, int) else -1))
        table = np.array(kept or np.zeros((0, 4)), np.int64)
        c = list(table[np.argsort(table[:, 1], kind="stable")].T)
        return Spans(name=c[0], start_ns=c[1], end_ns=c[2], thread=c[3]), _process(c[3])

    def _devices(self) -> dict[int, TraceDevice]:
        found = {}
        for index, name, sms, major, minor, memory in self._rows(
            "TARGET_INFO_GPU", "id", "name", "smCount", "computeMajor", "computeMinor", "totalMemory"
        ):
            if isinstance(index, int):
                whole = isinstance(major, int) and isinstance(minor, int)
                found[index] = TraceDevice(
                    index=index,
                    name=str(name) if name else None,
                    sms=sms if isinstance(sms, int) else None,
                    capability=(major, minor) if whole else None,  # type: ignore[arg-type]
                    memory_bytes=memory if isinstance(memory, int) else None,
                )
        return found

    def _base(self) -> int | None:
        rows = self._rows("TARGET_INFO_SESSION_START_TIME", "utcEpochNs")
        return rows[0][0] if rows and isinstance(rows[0][0], int) else None

    def _doubts(self) -> tuple[TraceDoubt, ...]:
        missing = [name for name in (_KERNEL, _CALLS) if name not in self.columns]
        text = f"the export lacks {' and '.join(missing)}: what depends on it is not known"
        return (TraceDoubt(topic="damaged", text=text),) if missing else ()


def _process(thread: Column) -> NDArray[np.int64]:
    """Nsight's global process id: the global thread id without its lowest 24 bits."""
    return (thread >> 24) << 24


S = TypeVar("S", Spans, Calls)


def _pick(spans: S, rows: NDArray[np.bool_]) -> S:
    return type(spans)(**{name: getattr(spans, name)[rows] for name in spans.__dataclass_fields__})
