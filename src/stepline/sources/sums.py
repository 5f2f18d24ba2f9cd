"""Adds up the windows and prefill batches of a stretch of a log, kind by kind."""

import polars as pl

from stepline.sources.columns import INSTRUMENTS

MAX_KINDS = 1_000
"""Kinds of windows in a stretch beyond which ranks are taken together."""
WINDOW, STEP = INSTRUMENTS.index("window"), INSTRUMENTS.index("step")

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

DECODE_COLUMNS: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(("number", "dp", "pp", "running", "ranks_summed", "instrument", *DECODE_MEANS), pl.Int64),
    **dict.fromkeys(("tok_s", "accept_length", *DECODE_FLOATS), pl.Float64),
    "graph": pl.Boolean,
}
"""Columns of a frame of decode lines; `number` is the line."""
PREFILL_COLUMNS: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(("number", "dp", "pp", *PREFILL_SUMS, *PREFILL_MEANS), pl.Int64),
    **dict.fromkeys(("pool_usage", "tok_s"), pl.Float64),
    "graph": pl.Boolean,
}
"""Columns of a frame of prefill lines."""


def prefill_sums(frame: pl.DataFrame) -> pl.DataFrame:
    """One row for each rank and graph mode."""
    return frame.group_by(*PREFILL_KEY, maintain_order=True).agg(
        pl.len().alias("batches"),
        pl.col("number").min(),
        *(pl.when(pl.col(c).count() > 0).then(pl.col(c).sum()).alias(c) for c in PREFILL_SUMS),
        *(pl.col(c).mean().round().cast(pl.Int64) for c in PREFILL_MEANS),
        *(pl.col(c).mean() for c in ("pool_usage", "tok_s")),
    )


def decode_sums(frame: pl.DataFrame, prefills: pl.DataFrame) -> pl.DataFrame:
    """One row for each key and validity, the disturbed windows of a key before its valid ones.

    `alone` marks valid windows that no disturbed ones of their key stand before. Where a stretch has too many
    kinds of windows, ranks are taken together.
    """
    before = prefills["number"].search_sorted(frame["number"]) if prefills.height else pl.lit(0)
    marked = frame.with_columns(
        prefills_before=before,
        has_queue=pl.col("queued") > 0,
        has_retracted=pl.col("retracted") > 0,
        has_rate=pl.col("tok_s") > 0,
        has_accept=pl.col("accept_length").is_not_null(),
    )
    undisturbed = _unchanged("running") & _unchanged("prefills_before")
    marked = marked.with_columns(valid=(undisturbed | (pl.col("instrument") == STEP)).fill_null(value=False))
    for rank in ("pp", "dp"):
        if marked.select(*DECODE_KEY, "valid").unique().height > MAX_KINDS:
            marked = marked.with_columns(pl.lit(None, dtype=pl.Int64).alias(rank))
    alone = pl.col("valid") & pl.col("valid").all().over(*DECODE_KEY)
    ordered = (
        _grouped(marked)
        .with_columns(alone=alone & (pl.col("instrument") == WINDOW))
        .sort(*DECODE_KEY, "valid", maintain_order=True)
    )
    return ordered.drop("valid", *(name for name in DECODE_KEY if name.startswith("has_")))


def _grouped(marked: pl.DataFrame) -> pl.DataFrame:
    accept = pl.col("accept_length").fill_null(1.0)
    harmonic = (pl.col("instrument") == WINDOW).first() & (pl.col("tok_s").min() > 0)
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


def _unchanged(name: str) -> pl.Expr:
    """True where a value is that of the rank's line before; null for the first."""
    return (pl.col(name) == pl.col(name).shift(1)).over("dp", "pp")
