"""vLLM's lines of single forwards many at a time: `--enable-logging-iteration-details` writes one a step."""

from typing import TYPE_CHECKING

from stepline.sources import thin
from stepline.sources.engines.vllm.stat_lines import time_of

if TYPE_CHECKING:
    import polars as pl

PATTERN = (
    r"Iteration\([0-9]+\): [0-9]+ context requests, ([0-9]+) context tokens, ([0-9]+) generation requests, "
    r"([0-9]+) generation tokens, iteration elapsed time: ([0-9.]+) ms"
    r"(?:, [^ ]* KV cache usage: ([0-9.]+)%)?\r?$"
)


class Bulk:
    """Reads pieces of a log."""

    def read(self, frame: "pl.DataFrame") -> "tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]":
        """(rows of forwards, no prefill rows, lines left over) of a frame of `number` and `line`."""
        import polars as pl  # noqa: PLC0415

        schema = thin.decode_schema()
        none = pl.DataFrame(schema=thin.prefill_schema())
        marked = frame.with_columns(step=pl.col("line").str.contains("iteration elapsed time", literal=True))
        lines, left = marked.filter("step"), marked.filter(~pl.col("step")).select("number", "line")
        if not lines.height:
            return pl.DataFrame(schema=schema), none, left
        values = lines["line"].str.extract_groups(PATTERN).struct.unnest()
        values.columns = ["prefill_tokens", "running", "made", "step_ms", "pool_usage"]
        engine = r"(?:Engine ([0-9]+): )?Iteration"
        process = lines["line"].str.extract(r"EngineCore_?(?:DP)?([0-9]+)")
        rows = values.with_columns(
            lines["number"],
            lines["line"].str.extract(engine).fill_null(process).alias("dp"),
            step_ms=pl.col("step_ms").cast(pl.Float64, strict=False),
            pool_usage=pl.col("pool_usage").cast(pl.Float64, strict=False) / 100,
        )
        ok = rows["running"].is_not_null() & (rows["step_ms"] > 0)
        kept = rows.filter(ok)
        last = lines["line"].filter(ok)
        when = time_of(last[-1].split("Iteration(")[0]) if kept.height else None
        plain = pl.col("made") == pl.col("running")
        kept = kept.with_columns(
            time_s=pl.lit(when, dtype=pl.Float64),
            tok_s=pl.when(plain).then(pl.col("made").cast(pl.Float64) / pl.col("step_ms") * 1000),
            instrument=pl.lit("step"),
            ranks_summed=pl.lit(1),
        )
        made = kept.select(
            (pl.col(name) if name in kept.columns else pl.lit(None)).cast(kind).alias(name)
            for name, kind in schema.items()
        )
        rest = pl.concat([left, lines.filter(~ok).select("number", "line")]).sort("number")
        return made, none, rest
