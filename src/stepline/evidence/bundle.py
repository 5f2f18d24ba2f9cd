"""The bundle: a Run as a folder, `run.json` for what is short and one Parquet file for each long table.

Every file is written beside its place and moved there whole, tables first and `run.json` last, so that an
interrupted save leaves files that are whole or absent. `load` takes what is there and says what is not.
"""

import os
import types
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from stepline.errors import UnreadableEvidence
from stepline.evidence.gpu import GpuSample
from stepline.evidence.origin import Origin
from stepline.evidence.run import SCHEMA_VERSION, ReadingDoubt, Run
from stepline.evidence.scheduler import DecodeReport, PrefillReport

RUN_FILE = "run.json"
PART = ".part"
"""What a file is called until it is whole."""
FORMAT = "stepline-bundle"
TABLES: dict[str, type[msgspec.Struct]] = {
    "decodes": DecodeReport,
    "prefills": PrefillReport,
    "stretches": DecodeReport,
    "gpu_samples": GpuSample,
}
"""Fields of Run that are kept as Parquet, with the record of their rows."""
SHORT_ROWS = 2_000
"""Tables up to this many rows stay in run.json: they load faster than polars does (0.2 s)."""


class _Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """What run.json holds: the Run without its long tables, and how many rows each of those has."""

    format: str
    schema_version: int
    tables: dict[str, int]
    run: Run


def save(run: Run, folder: str | Path) -> Path:
    """Write a run into `folder`, which is made if needed; an earlier bundle there is replaced.

    Raises:
        OSError: when the folder cannot be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in files_of(folder):
        path.unlink(missing_ok=True)
    long = {name: rows for name in TABLES if len(rows := getattr(run, name)) > SHORT_ROWS}
    for name, rows in long.items():
        _put(_table_path(folder, name), _to_parquet(rows, TABLES[name]))
    rest: dict[str, Any] = dict.fromkeys(long, ())
    bundle = _Bundle(
        format=FORMAT,
        schema_version=SCHEMA_VERSION,
        tables={name: len(rows) for name, rows in long.items()},
        run=msgspec.structs.replace(run, **rest),
    )
    _put(folder / RUN_FILE, msgspec.json.format(msgspec.json.encode(bundle), indent=1))
    return folder


def is_bundle(folder: Path) -> bool:
    """True for a folder that a bundle was saved to, whole or interrupted."""
    try:
        with (folder / RUN_FILE).open("rb") as file:
            marked = FORMAT.encode() in file.read(200)
    except OSError:
        marked = False
    return marked or any(_table_path(folder, name).is_file() for name in TABLES)


def files_of(folder: Path) -> tuple[Path, ...]:
    """The files of a bundle's own in `folder`."""
    return folder / RUN_FILE, *(_table_path(folder, name) for name in TABLES)


def load(folder: str | Path) -> Run:
    """Read a saved run; of a damaged bundle what is whole, with a doubt for each part that is not.

    Raises:
        UnreadableEvidence: when nothing of the bundle is whole, or a newer version of stepline wrote it.
    """
    folder = Path(folder)
    doubts: list[ReadingDoubt] = []
    bundle = _read_head(folder, doubts)
    changes: dict[str, Any] = {}
    for name, record in TABLES.items():
        path = _table_path(folder, name)
        expected = bundle.tables.get(name, 0) if bundle else None
        if expected == 0 or (expected is None and not path.is_file()):
            continue
        try:
            changes[name] = _from_parquet(path, record)
        except (OSError, ValueError) as error:
            doubts.append(_missing(path, f"{type(error).__name__}: {str(error).splitlines()[0]}"))
    if bundle is None and not changes:
        raise UnreadableEvidence(f"{folder}: nothing of this bundle is whole; record or save it again")
    run = bundle.run if bundle else Run()
    return msgspec.structs.replace(run, **changes, doubts=(*run.doubts, *doubts))


def _read_head(folder: Path, doubts: list[ReadingDoubt]) -> _Bundle | None:
    path = folder / RUN_FILE
    try:
        content = path.read_bytes()
    except OSError as error:
        doubts.append(_missing(path, error.strerror or str(error)))
        return None
    try:
        version = msgspec.json.decode(content, type=_Version).schema_version
    except msgspec.DecodeError as error:
        doubts.append(_missing(path, str(error)))
        return None
    if version > SCHEMA_VERSION:
        raise UnreadableEvidence(
            f"{path}: written by a newer stepline (schema {version}, this one reads up to {SCHEMA_VERSION}); "
            "update stepline to read it"
        )
    try:
        return msgspec.json.decode(content, type=_Bundle)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        doubts.append(_missing(path, str(error)))
        return None


class _Version(msgspec.Struct, frozen=True):
    schema_version: int = SCHEMA_VERSION


def _missing(path: Path, why: str) -> ReadingDoubt:
    text = f"{path.name} of this bundle could not be read ({why}): an interrupted save or copy"
    return ReadingDoubt(topic="damaged-file", text=text, origin=Origin(path.name))


def _table_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.parquet"


def _put(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    part = path.with_name(path.name + PART)
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _columns(record: type[msgspec.Struct]) -> dict[str, type]:
    """Python type of each column; a record's origin becomes its three fields."""
    kinds: dict[str, type] = {"origin.file": str, "origin.line": int, "origin.field": str}
    for name, hint in typing.get_type_hints(record).items():
        if name != "origin":
            kinds[name] = _scalar(hint)
    return kinds


def _scalar(hint: Any) -> type:
    """int, float, bool or str behind an optional or a literal."""
    if isinstance(hint, types.UnionType):
        hint = next(part for part in typing.get_args(hint) if part is not type(None))
    if typing.get_origin(hint) is Literal:
        return type(typing.get_args(hint)[0])
    scalar: type = hint
    return scalar


def _to_parquet(rows: Sequence[Any], record: type[msgspec.Struct]) -> bytes:
    import io  # noqa: PLC0415

    import polars as pl  # noqa: PLC0415  # recording on a server must not need it

    kinds: dict[type, Any] = {int: pl.Int64, float: pl.Float64, bool: pl.Boolean, str: pl.String}
    columns: list[pl.Series] = []
    for name, kind in _columns(record).items():
        owner, _, field = name.rpartition(".")
        values = [getattr(row.origin if owner else row, field) for row in rows]
        if kind is float:
            values = [None if value is None else float(value) for value in values]
        columns.append(pl.Series(name, values, dtype=kinds[kind]))
    sink = io.BytesIO()
    pl.DataFrame(columns).write_parquet(sink, compression="zstd", compression_level=3)
    return sink.getvalue()


def _from_parquet(path: Path, record: type[msgspec.Struct]) -> tuple[Any, ...]:
    """Rows through JSON, both ends of which are native code: thrice as fast as one by one."""
    import polars as pl  # noqa: PLC0415

    try:
        frame = pl.read_parquet(path)
        origin = pl.struct(pl.col(f"origin.{name}").alias(name) for name in ("file", "line", "field"))
        plain = [name for name in _columns(record) if name in frame.columns and "." not in name]
        rows = frame.select(*plain, origin=origin).write_json()
    except pl.exceptions.PolarsError as error:
        raise ValueError(str(error)) from None
    kind: Any = types.GenericAlias(tuple, (record, ...))
    decoded: tuple[Any, ...] = msgspec.json.decode(rows, type=kind)
    return decoded
