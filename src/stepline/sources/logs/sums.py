"""Adds up the windows and prefill batches of a stretch of a log, kind by kind."""

from collections.abc import Iterator

import polars as pl

from stepline.sources.logs.numbers import INSTRUMENTS

MAX_KINDS = 1_000
"""Kinds of windows in a stretch beyond which ranks are taken together."""
WINDOW, STEP = INSTRUMENTS.index("window"), INSTRUMENTS.index("step")

DECODE_KEY = ("ranks_summed", "instrument", "dp", "pp", "running", "kind")
DECODE_COUNTS = (
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
PREFILL_COUNTS = ("running", "queued", "pending_tokens", "inflight", "bootstrapping")
PREFILL_FLOATS = ("pool_usage", "tok_s")

DECODE_COLUMNS: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(("number", "ranks_summed", "instrument", "dp", "pp", "running"), pl.Int64),
    **dict.fromkeys(("tok_s", "accept_length", *DECODE_COUNTS, *DECODE_FLOATS), pl.Float64),
    "graph": pl.Boolean,
}
"""Columns of a frame of decode lines; `number` is the line."""
PREFILL_COLUMNS: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(("number", "dp", "pp"), pl.Int64),
    **dict.fromkeys((*PREFILL_SUMS, *PREFILL_COUNTS, *PREFILL_FLOATS), pl.Float64),
    "graph": pl.Boolean,
}
"""Columns of a frame of prefill lines."""
NEEDED = {"running", "queued", "retracted", "tok_s"}
OPTIONAL = {*DECODE_COUNTS, *DECODE_FLOATS, *PREFILL_COUNTS, *PREFILL_FLOATS} - NEEDED
"""Columns that a frame may do without."""


def prefill_sums(frame: pl.DataFrame) -> pl.DataFrame:
    """One row for each rank and graph mode."""
    return frame.group_by(*PREFILL_KEY, maintain_order=True).agg(
        pl.len().alias("batches"),
        pl.col("number").min(),
        *(pl.when(pl.col(c).count() > 0).then(pl.col(c).sum()).cast(pl.Int64).alias(c) for c in PREFILL_SUMS),
        *_means(frame, PREFILL_COUNTS, PREFILL_FLOATS),
    )


def decode_sums(frame: pl.DataFrame, prefills: pl.DataFrame) -> pl.DataFrame:
    """One row for each key and validity, the disturbed windows of a key before its valid ones.

    A key is rank, running batch, instrument, and whether there are graphs, a queue, retractions, a rate and
    drafts. `alone` marks valid windows that no disturbed ones of their key stand before. Where a stretch has too
    many kinds of windows, ranks are taken together.
    """
    before = prefills["number"].search_sorted(frame["number"]) if prefills.height else pl.lit(0)
    marked = frame.with_columns(
        prefills_before=before,
        kind=_kind(
            pl.col("graph"),
            pl.col("queued") > 0,
            pl.col("retracted") > 0,
            pl.col("tok_s") > 0,
            pl.col("accept_length").is_not_null(),
        ),
    )
    undisturbed = _unchanged("running") & _unchanged("prefills_before")
    marked = marked.with_columns(valid=(undisturbed | (pl.col("instrument") == STEP)).fill_null(value=False))
    kinds = marked.select(*DECODE_KEY, "valid").unique()
    for rank in ("pp", "dp"):
        if kinds.height > MAX_KINDS:
            kinds = kinds.drop(rank).unique()
            marked = marked.with_columns(pl.lit(None, dtype=pl.Int64).alias(rank))
    alone = pl.col("valid") & pl.struct(DECODE_KEY).is_unique() & (pl.col("instrument") == WINDOW)
    return _grouped(marked).with_columns(alone=alone).sort(*DECODE_KEY, "valid").drop("valid", "kind")


def _grouped(marked: pl.DataFrame) -> pl.DataFrame:
    accept = pl.col("accept_length").fill_null(1.0)
    harmonic = (pl.col("instrument") == WINDOW).first() & (pl.col("tok_s").min() > 0)
    return marked.group_by(*DECODE_KEY, "valid", maintain_order=True).agg(
        pl.len().alias("windows"),
        pl.col("number").min(),
        pl.col("graph").first(),
        pl.when(harmonic)
        .then(accept.sum() / (accept / pl.col("tok_s")).sum())
        .otherwise(pl.col("tok_s").mean())
        .alias("tok_s"),
        pl.col("accept_length").mean(),
        *_means(marked, DECODE_COUNTS, DECODE_FLOATS),
    )


def _means(frame: pl.DataFrame, counts: tuple[str, ...], floats: tuple[str, ...]) -> Iterator[pl.Expr]:
    """Means of the columns that the frame has, those of counts as whole numbers."""
    for name in (*counts, *floats):
        if name in frame.columns:
            mean = pl.col(name).mean()
            yield mean.round().cast(pl.Int64) if name in counts else mean


def _kind(*marks: pl.Expr) -> pl.Expr:
    """One number for truths that may be unknown: equal and ordered as they are one after the other."""
    kind: pl.Expr = pl.lit(0, dtype=pl.Int64)
    for mark in marks:
        kind = 3 * kind + (mark.cast(pl.Int64) + 1).fill_null(0)
    return kind


def _unchanged(name: str) -> pl.Expr:
    """True where a value is that of the rank's line before; null for the first."""
    return (pl.col(name) == pl.col(name).shift(1)).over("dp", "pp")
