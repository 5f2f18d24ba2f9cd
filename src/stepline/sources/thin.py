"""Bounds the number of records that a long log makes: past its opening, windows are kept as sums.

A stretch of the log becomes one record for each rank, running batch, graph mode and kind of window in it.
What is unusual (eager, queued, retracted) has records of its own, so nothing rare is averaged away. Windows
that a step can be read from (same batch as the window before, no prefill between) are summed apart from the
others and come right after a record of their own batch, so that whoever reads them judges them as the
single windows before.
"""

from typing import TYPE_CHECKING, Any

from stepline.evidence.origin import Origin
from stepline.evidence.scheduler import DecodeReport, PrefillReport
from stepline.sources.logbook import LogBook

if TYPE_CHECKING:
    import polars as pl

KEEP = 30_000
"""Records kept one by one from the opening of a log: four hours of a server at two lines a second."""
MAX_KINDS = 1_000
"""Kinds of windows in a stretch beyond which ranks are taken together."""
STRETCHES = 16
"""After so many stretches the next ones are twice, then four and then eight times as long."""

DECODE_KEY = (
    "ranks_summed",
    "instrument",
    "dp",
    "pp",
    "running",
    "graph",
    "has_queue",
    "has_retracted",
    "has_rate",
    "has_accept",
)
DECODE_MEANS = (
    "queued",
    "pool_tokens",
    "retracted",
    "transferring",
    "preallocated",
    "deferred",
    "prefill_tokens",
)
DECODE_FLOATS = ("pool_usage", "forward_busy", "accept_rate", "prefill_tok_s", "prefix_hit_share", "step_ms")
PREFILL_KEY = ("dp", "pp", "graph")
PREFILL_SUMS = ("new_sequences", "new_tokens", "cached_tokens")
PREFILL_MEANS = ("running", "queued", "pending_tokens", "inflight", "bootstrapping")


def decode_schema() -> dict[str, Any]:
    """Columns of a frame of decode lines; `number` is the line."""
    import polars as pl  # noqa: PLC0415  # only for logs past KEEP records

    whole = ("number", "dp", "pp", "running", "ranks_summed", *DECODE_MEANS)
    return {
        **dict.fromkeys(whole, pl.Int64),
        **dict.fromkeys(("time_s", "tok_s", "accept_length", *DECODE_FLOATS), pl.Float64),
        "graph": pl.Boolean,
        "instrument": pl.String,
    }


def prefill_schema() -> dict[str, Any]:
    """Columns of a frame of prefill lines."""
    import polars as pl  # noqa: PLC0415

    whole = ("number", "dp", "pp", *PREFILL_SUMS, *PREFILL_MEANS)
    return {
        **dict.fromkeys(whole, pl.Int64),
        **dict.fromkeys(("time_s", "pool_usage", "tok_s"), pl.Float64),
        "graph": pl.Boolean,
    }


class Thinner:
    """Gathers frames of one log and turns each stretch into summed records of its book."""

    def __init__(self, book: LogBook) -> None:
        self._book = book
        self._decodes: list[pl.DataFrame] = []
        self._prefills: list[pl.DataFrame] = []
        self._pieces = 0
        self._stretches = 0
        self.lines = 0
        """Decode and prefill lines that were summed."""

    def take_records(self, decodes_from: int, prefills_from: int) -> None:
        """Move the book's records from these places on into the sums."""
        if len(self._book.decodes) == decodes_from and len(self._book.prefills) == prefills_from:
            return
        self.add(
            _frame(self._book.decodes[decodes_from:], decode_schema()),
            _frame(self._book.prefills[prefills_from:], prefill_schema()),
        )
        del self._book.decodes[decodes_from:], self._book.prefills[prefills_from:]

    def add(self, decodes: "pl.DataFrame", prefills: "pl.DataFrame") -> None:
        """Frames with the columns of the schemas."""
        if decodes.height:
            self._decodes.append(decodes)
        if prefills.height:
            self._prefills.append(prefills)
        self.lines += decodes.height + prefills.height

    def end_piece(self) -> None:
        """A piece of the log is read; the stretch ends when it has enough of them."""
        self._pieces += 1
        if self._pieces >= 1 << min(3, self._stretches // STRETCHES):
            self.end_stretch()

    def end_stretch(self) -> None:
        """Write what was gathered into the book."""
        import polars as pl  # noqa: PLC0415

        if self._decodes or self._prefills:
            decodes = pl.concat(self._decodes or [pl.DataFrame(schema=decode_schema())]).sort("number")
            prefills = pl.concat(self._prefills or [pl.DataFrame(schema=prefill_schema())]).sort("number")
            times = [frame["time_s"].max() for frame in (decodes, prefills) if frame.height]
            end = max((float(str(time)) for time in times if time is not None), default=None)
            self._write_prefills(prefills, end)
            self._write_decodes(decodes, prefills, end)
        self._decodes, self._prefills = [], []
        self._pieces = 0
        self._stretches += 1

    def _write_prefills(self, frame: "pl.DataFrame", end: float | None) -> None:
        import polars as pl  # noqa: PLC0415

        sums = frame.group_by(*PREFILL_KEY, maintain_order=True).agg(
            pl.len().alias("batches"),
            pl.col("number").min(),
            *(pl.when(pl.col(c).count() > 0).then(pl.col(c).sum()).alias(c) for c in PREFILL_SUMS),
            *(pl.col(c).mean().round().cast(pl.Int64) for c in PREFILL_MEANS),
            *(pl.col(c).mean() for c in ("pool_usage", "tok_s")),
        )
        for row in sums.iter_rows(named=True):
            origin = Origin(self._book.file, row.pop("number"))
            self._book.add(PrefillReport(seq=self._book.next_seq(), origin=origin, time_s=end, **row))

    def _write_decodes(self, frame: "pl.DataFrame", prefills: "pl.DataFrame", end: float | None) -> None:
        for row in _decode_sums(frame, prefills).iter_rows(named=True):
            origin = Origin(self._book.file, row.pop("number"))
            alone = row.pop("alone")
            if alone and row["windows"] > 1:
                row["windows"] -= 1
                first = {**row, "windows": 1}
                self._book.add(DecodeReport(seq=self._book.next_seq(), origin=origin, time_s=end, **first))
            self._book.add(DecodeReport(seq=self._book.next_seq(), origin=origin, time_s=end, **row))


def _decode_sums(frame: "pl.DataFrame", prefills: "pl.DataFrame") -> "pl.DataFrame":
    """One row for each key and validity, the disturbed windows of a key before its valid ones.

    `alone` marks valid windows that no disturbed ones of their key stand before. Where a stretch has too many
    kinds of windows, ranks are taken together.
    """
    import polars as pl  # noqa: PLC0415

    before = prefills["number"].search_sorted(frame["number"]) if prefills.height else pl.lit(0)
    marked = frame.with_columns(
        prefills_before=before,
        has_queue=pl.col("queued") > 0,
        has_retracted=pl.col("retracted") > 0,
        has_rate=pl.col("tok_s") > 0,
        has_accept=pl.col("accept_length").is_not_null(),
    )
    undisturbed = _unchanged("running") & _unchanged("prefills_before")
    marked = marked.with_columns(
        valid=(undisturbed | (pl.col("instrument") == "step")).fill_null(value=False)
    )
    for rank in ("pp", "dp"):
        if marked.select(*DECODE_KEY, "valid").unique().height > MAX_KINDS:
            marked = marked.with_columns(pl.lit(None, dtype=pl.Int64).alias(rank))
    alone = pl.col("valid") & pl.col("valid").all().over(*DECODE_KEY)
    ordered = (
        _grouped(marked)
        .with_columns(alone=alone & (pl.col("instrument") == "window"))
        .sort(*DECODE_KEY, "valid", maintain_order=True)
    )
    return ordered.drop("valid", *(name for name in DECODE_KEY if name.startswith("has_")))


def _grouped(marked: "pl.DataFrame") -> "pl.DataFrame":
    import polars as pl  # noqa: PLC0415

    accept = pl.col("accept_length").fill_null(1.0)
    harmonic = (pl.col("instrument") == "window").first() & (pl.col("tok_s").min() > 0)
    return marked.group_by(*DECODE_KEY, "valid", maintain_order=True).agg(
        pl.len().alias("windows"),
        pl.col("number").min(),
        pl.when(harmonic)
        .then(accept.sum() / (accept / pl.col("tok_s")).sum())
        .otherwise(pl.col("tok_s").mean())
        .alias("tok_s"),
        pl.col("accept_length").mean(),
        *(pl.col(c).mean().round().cast(pl.Int64) for c in DECODE_MEANS),
        *(pl.col(c).mean() for c in DECODE_FLOATS),
    )


def _unchanged(name: str) -> "pl.Expr":
    """True where a value is that of the rank's line before; null for the first."""
    import polars as pl  # noqa: PLC0415

    return (pl.col(name) == pl.col(name).shift(1)).over("dp", "pp")


def _frame(records: list[Any], schema: dict[str, Any]) -> "pl.DataFrame":
    import polars as pl  # noqa: PLC0415

    columns = {
        name: [record.origin.line if name == "number" else getattr(record, name) for record in records]
        for name in schema
    }
    return pl.DataFrame(columns, schema=schema)
