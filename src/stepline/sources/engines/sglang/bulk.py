"""SGLang's batch lines many at a time, for logs of hundreds of megabytes.

Without its digits a line is its shape: all lines of one shape have the same keys in the same order. Without
its words it is a row of comma-separated numbers. So each shape is read once by the reader of single lines,
and all its rows by a native CSV reader. A line of an irregular shape, or without the numbers a record
needs, goes back to the reader of single lines, so both ways read the same.
"""

import io
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from stepline.sources import thin
from stepline.sources.engines.sglang.batch_lines import (
    BOOTSTRAPPING,
    GRAPH_KEYS,
    HEAD,
    INFLIGHT,
    PAIR,
    POOL_TOKENS,
    POOL_USAGES,
)
from stepline.sources.engines.sglang.prefix import parse_prefix

if TYPE_CHECKING:
    import polars as pl

MAX_SHAPES = 256
_DIGITS = b"0123456789."
_WORDS = bytes(c for c in range(32, 127) if chr(c) not in "0123456789.,ABCDEFGHIJKLMNOPQRSTUVWXYZ") + b"\r\t"
"""What is not of a number, a separator, a rank's tag or the first letter of True and False."""
_PLAIN = re.compile(r"\d+(?:\.\d+)?%?|-?inf%?|nan%?|True|False")

DECODE: dict[str, tuple[str, ...]] = {
    "running": ("#running-req",),
    "queued": ("#queue-req",),
    "pool_tokens": POOL_TOKENS,
    "retracted": ("#retracted-req",),
    "transferring": ("#transfer-req",),
    "preallocated": ("#prealloc-req",),
    "tok_s": ("gen throughput (token/s)",),
    "accept_length": ("accept len",),
    "accept_rate": ("accept rate",),
    "forward_busy": ("fwd occupancy",),
}
PREFILL: dict[str, tuple[str, ...]] = {
    "new_sequences": ("#new-seq",),
    "new_tokens": ("#new-token",),
    "cached_tokens": ("#cached-token",),
    "running": ("#running-req",),
    "queued": ("#queue-req",),
    "pending_tokens": ("#pending-token",),
    "inflight": INFLIGHT,
    "bootstrapping": BOOTSTRAPPING,
    "tok_s": ("input throughput (token/s)",),
}
NEEDED = {"Decode": ("running",), "Prefill": ("new_sequences", "new_tokens")}


class Shape(NamedTuple):
    """The keys of a kind of line, each with the number of its column and whether it is a percentage."""

    kind: str
    columns: dict[str, tuple[int, bool]]


def learn(line: str) -> Shape | None:
    """The shape of a whole batch line; None for anything less regular."""
    heads = list(HEAD.finditer(line))
    if len(heads) != 1 or line.count(" batch") != 1:
        return None
    head = heads[0]
    columns: dict[str, tuple[int, bool]] = {}
    end, column = head.end(), 1 if "[" in head[0] else 0
    for match in PAIR.finditer(line, head.end()):
        regular = line[end : match.start()] == (", " if columns else "")
        if not regular or match["key"] in columns or not _PLAIN.fullmatch(match["value"]):
            return None
        columns[match["key"]] = (column, match["value"].endswith("%"))
        end, column = match.end(), column + 1
    if "#queue-req" not in columns or line[end:].strip(", \r"):
        return None
    return Shape(head["kind"], columns)


class Bulk:
    """Reads pieces of a log; keeps the shapes it has learned."""

    def __init__(self) -> None:
        self._shapes: dict[str, Shape | None] = {}

    def read(self, frame: "pl.DataFrame") -> "tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]":
        """(decode rows, prefill rows, lines left over) of a frame of `number` and `line`."""
        import polars as pl  # noqa: PLC0415

        batch = frame["line"].str.contains_any(["Decode batch", "Prefill batch"])
        rows: dict[str, list[pl.DataFrame]] = {"Decode": [], "Prefill": []}
        left = [frame.filter(~batch)]
        lines = frame.filter(batch)
        if lines.height:
            parts = lines["line"].str.splitn(" batch", 2).struct.unnest()
            prefix, body = parts["field_0"], parts["field_1"]
            # Without the point or comma of the head, both of its spellings have the same columns.
            text = body.str.slice(1).str.join("\n")[0].encode()
            lines = lines.with_columns(
                _rank(prefix, "DP").alias("dp"),
                _rank(prefix, "PP").alias("pp"),
                # Only when the piece ends is of use: no record of a sum has a time of its own.
                pl.lit(parse_prefix(prefix[-1] or "").time_s, dtype=pl.Float64).alias("time_s"),
                (prefix.str.slice(-3) + _split(text.translate(None, _DIGITS))).alias("shape"),
                _split(text.translate(None, _WORDS)).alias("values"),
            )
            for (name,), group in lines.group_by("shape", maintain_order=True):
                shape = self._shape(str(name), group["line"][0])
                if shape is None:
                    left.append(group.select("number", "line"))
                    continue
                made, rest = _apply(shape, group)
                left.append(rest.select("number", "line"))
                rows[shape.kind].append(made)
        return (
            _in_schema(rows["Decode"], thin.decode_schema()),
            _in_schema(rows["Prefill"], thin.prefill_schema()),
            pl.concat(left).sort("number"),
        )

    def _shape(self, name: str, line: str) -> Shape | None:
        if name not in self._shapes and len(self._shapes) < MAX_SHAPES:
            self._shapes[name] = learn(line)
        return self._shapes.get(name)


def _split(text: bytes) -> "pl.Series":
    import polars as pl  # noqa: PLC0415

    return pl.Series([text.decode()]).str.split("\n").explode()


def _apply(shape: Shape, lines: "pl.DataFrame") -> "tuple[pl.DataFrame, pl.DataFrame]":
    """(rows with those columns of the schema that the shape has, lines that lack a number a record needs)."""
    import polars as pl  # noqa: PLC0415

    fields = DECODE if shape.kind == "Decode" else PREFILL
    wanted = [
        shape.columns[key] for keys in (*fields.values(), POOL_USAGES) for key in keys if key in shape.columns
    ]
    graph = next((shape.columns[key][0] for key in GRAPH_KEYS if key in shape.columns), None)
    dtypes: dict[str, Any] = {str(column): pl.Float64 for column, _ in wanted}
    if graph is not None:
        dtypes[str(graph)] = pl.String
    width = lines["values"][0].count(",") + 1
    values = pl.read_csv(
        io.BytesIO(lines["values"].str.join("\n")[0].encode()),
        has_header=False,
        quote_char=None,
        new_columns=[str(column) for column in range(width)],
        schema_overrides=[dtypes.get(str(column), pl.String) for column in range(width)],
        columns=sorted(int(column) for column in dtypes),
        ignore_errors=True,
    ).with_columns(lines.get_columns())
    expressions = {name: _first(shape, keys) for name, keys in fields.items()}
    pools = [_number(shape, key) for key in POOL_USAGES if key in shape.columns]
    expressions["pool_usage"] = pl.max_horizontal(pools) if pools else None
    expressions["graph"] = None if graph is None else pl.col(str(graph)) == "T"
    made = values.select(
        *("number", "dp", "pp", "time_s"),
        **{name: value for name, value in expressions.items() if value is not None},
    )
    fits = made.select(pl.all_horizontal(pl.col(c).is_not_null() for c in NEEDED[shape.kind])).to_series()
    if fits.all():
        return made, lines.clear()
    return made.filter(fits), lines.filter(~fits)


def _in_schema(frames: "list[pl.DataFrame]", schema: dict[str, Any]) -> "pl.DataFrame":
    """Frames with some of the columns as one with all of them."""
    import polars as pl  # noqa: PLC0415

    if not frames:
        return pl.DataFrame(schema=schema)
    joined = pl.concat(frames, how="diagonal").with_columns(instrument=pl.lit("window"), ranks_summed=1)
    return joined.select(
        (pl.col(name) if name in joined.columns else pl.lit(None)).cast(kind).alias(name)
        for name, kind in schema.items()
    )


def _first(shape: Shape, keys: tuple[str, ...]) -> "pl.Expr | None":
    key = next((key for key in keys if key in shape.columns), None)
    return None if key is None else _number(shape, key)


def _number(shape: Shape, key: str) -> "pl.Expr":
    import polars as pl  # noqa: PLC0415

    column, percent = shape.columns[key]
    return pl.col(str(column)) / 100 if percent else pl.col(str(column))


def _rank(prefix: "pl.Series", tag: str) -> "pl.Series":
    """The number behind a rank's tag."""
    import polars as pl  # noqa: PLC0415

    if not prefix.str.contains_any([f" {tag}", f"[{tag}"]).any():
        return pl.repeat(None, len(prefix), dtype=pl.Int64, eager=True)
    return prefix.str.extract(rf"[ \[]{tag}([0-9]+)").cast(pl.Int64, strict=False)
